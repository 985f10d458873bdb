// A voice for the fake microphone.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const rate = 16000;

const folders = [];
process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/**
 * Writes a WAV file of `text` between stretches of silence, in seconds, and returns its path and its length in ms. The browser plays it over
 * and over, from its beginning when the microphone is opened.
 */
export function speak(text, { before = 1.2, after = 1.5 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'vela-speech-'));
  folders.push(folder);
  const spoken = join(folder, 'spoken.wav');
  execFileSync('flite', ['-voice', 'slt', '-t', text, '-o', spoken]);
  const wav = readFileSync(spoken);
  if (wav.readUInt32LE(24) !== rate || wav.readUInt16LE(22) !== 1) throw new Error('the voice is not 16 kHz mono');
  const samples = wav.subarray(wav.indexOf('data') + 8);
  const quiet = (seconds) => Buffer.alloc(Math.round(seconds * rate) * 2);
  const data = Buffer.concat([quiet(before), samples, quiet(after)]);
  const header = Buffer.from(wav.subarray(0, 44));
  header.writeUInt32LE(36 + data.length, 4);
  header.writeUInt32LE(data.length, 40);
  const file = join(folder, 'microphone.wav');
  writeFileSync(file, Buffer.concat([header, data]));
  return { file, ms: (data.length / 2 / rate) * 1000 };
}
