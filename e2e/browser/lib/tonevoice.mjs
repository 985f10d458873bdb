// A voice for vela.yaml, as a command: it reads a text and writes a WAV in which each character takes the same time, so that it is known to the
// sample which words have been heard. No sample of it is zero.
import { pathToFileURL } from 'node:url';

const rate = 24000;

/** How long a character takes, in ms. */
export const msPerChar = 40;

function wav(text) {
  const perChar = (rate * msPerChar) / 1000;
  const wav = Buffer.alloc(44 + 2 * perChar * text.length);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(2 * rate, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(wav.length - 44, 40);
  for (let i = 0; i < perChar * text.length; i++) {
    const hz = 180 + 8 * (text.charCodeAt(Math.floor(i / perChar)) % 64);
    wav.writeInt16LE(Math.round(6000 * Math.sin((2 * Math.PI * hz * i) / rate)) || 1, 44 + 2 * i);
  }
  return wav;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  let text = '';
  for await (const piece of process.stdin.setEncoding('utf8')) text += piece;
  process.stdout.write(wav(text.trim()));
}
