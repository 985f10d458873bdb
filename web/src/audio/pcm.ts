/** Samples of -1 to 1 as PCM16, little-endian as the protocol wants it whatever the machine is. */
export function pcm16(samples: Float32Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(samples.length * 2);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < samples.length; i++) {
    const s = Math.max(-1, Math.min(1, samples[i]!));
    view.setInt16(i * 2, Math.round(s < 0 ? s * 0x8000 : s * 0x7fff), true);
  }
  return bytes;
}

/** The loudness of some samples from 0 (-60 dB or less) to 1 (-6 dB or more): what an ear and a level meter make of it. */
export function level(samples: Float32Array): number {
  if (samples.length === 0) return 0;
  let sum = 0;
  for (const s of samples) sum += s * s;
  const db = 10 * Math.log10(sum / samples.length + 1e-12);
  return Math.max(0, Math.min(1, (db + 60) / 54));
}

/** PCM16, little-endian, as samples of -1 to 1. A byte too many is left out. */
export function samplesOf(pcm: Uint8Array): Float32Array<ArrayBuffer> {
  const view = new DataView(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  const samples = new Float32Array(pcm.byteLength >> 1);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(i * 2, true) / 0x8000;
  return samples;
}
