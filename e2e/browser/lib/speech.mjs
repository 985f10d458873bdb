// What the fake microphone hears.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const rate = 16000;

const folders = [];
process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'vela-speech-'));
  folders.push(folder);
  return folder;
}

/** Sounds, one after the other. */
export const after = (...sounds) => Int16Array.from(sounds.flatMap((sound) => [...sound]));

/** Silence, in seconds. */
export const quiet = (seconds) => new Int16Array(Math.round(seconds * rate));

/** A text as a voice says it. */
export function voice(text) {
  const file = join(newFolder(), 'spoken.wav');
  execFileSync('flite', ['-voice', 'slt', '-t', text, '-o', file]);
  const wav = readFileSync(file);
  if (wav.readUInt32LE(24) !== rate || wav.readUInt16LE(22) !== 1) throw new Error('the voice is not 16 kHz mono');
  const data = wav.subarray(wav.indexOf('data') + 8);
  return Int16Array.from({ length: data.length >> 1 }, (_, i) => data.readInt16LE(2 * i));
}

/** Numbers from -1 to 1 that are the same each time. */
function noise(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 0x80000000 - 1;
  };
}

/** A cough: two bursts of noise through the resonances of a throat, which begin at once and die away. */
export function cough(loudness = 0.7) {
  const random = noise(7);
  const out = quiet(0.45);
  const resonances = [
    { hz: 550, width: 180, a: 0, b: 0 },
    { hz: 1400, width: 300, a: 0, b: 0 },
    { hz: 2600, width: 500, a: 0, b: 0 },
  ];
  for (let i = 0; i < out.length; i++) {
    const seconds = i / rate;
    const burst = Math.exp(-seconds / 0.05) + (seconds > 0.22 ? 0.7 * Math.exp(-(seconds - 0.22) / 0.06) : 0);
    let sum = 0;
    for (const r of resonances) {
      const radius = Math.exp((-Math.PI * r.width) / rate);
      const now = (1 - radius) * random() * burst + 2 * radius * Math.cos((2 * Math.PI * r.hz) / rate) * r.a - radius * radius * r.b;
      r.b = r.a;
      r.a = now;
      sum += now;
    }
    out[i] = Math.max(-1, Math.min(1, sum * loudness)) * 32767;
  }
  return out;
}

/** A hum without a word in it, from a throat that is cleared: a low voice on one vowel. */
export function hum(seconds, hz = 120) {
  const out = quiet(seconds);
  for (let i = 0; i < out.length; i++) {
    let sum = 0;
    for (let k = 1; k < 20; k++) {
      const formants = Math.exp(-((hz * k - 500) ** 2) / 80_000) + 0.5 * Math.exp(-((hz * k - 1200) ** 2) / 125_000) + 0.1;
      sum += (formants * Math.sin((2 * Math.PI * hz * k * i) / rate)) / k;
    }
    out[i] = 32767 * 0.18 * sum * Math.min(1, i / 800, (out.length - i) / 800);
  }
  return out;
}

/** The same sound with the noise of a room behind it: noise that is the stronger the lower it is. */
export function inRoom(sound, loudness = 0.01) {
  const random = noise(11);
  let low = 0;
  return sound.map((sample) => {
    low += 0.05 * (random() - low);
    return Math.max(-32768, Math.min(32767, sample + 32767 * 6 * loudness * low));
  });
}

/**
 * Writes a WAV file of what is heard, one sound after the other, and returns its path and its length in ms. The browser plays it over and over,
 * from its beginning when the microphone is opened.
 */
export function record(...sounds) {
  const samples = sounds.reduce((sum, { length }) => sum + length, 0);
  const wav = Buffer.alloc(44 + 2 * samples);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(36 + 2 * samples, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(2 * rate, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(2 * samples, 40);
  let at = 44;
  for (const sound of sounds) for (const sample of sound) at = wav.writeInt16LE(sample, at);
  const file = join(newFolder(), 'microphone.wav');
  writeFileSync(file, wav);
  return { file, ms: (1000 * samples) / rate };
}

/** A text between stretches of silence, in seconds. */
export function speak(text, { before = 1.2, after = 1.5 } = {}) {
  return record(quiet(before), voice(text), quiet(after));
}
