import { expect, test } from 'vitest';
import { Chunker, chunkSamples, type Chunk } from './chunker';
import { level, pcm16 } from './pcm';

function run(rate: number, samples: Float32Array): { chunks: Chunk[]; flushed: Chunk[] } {
  const chunker = new Chunker(rate);
  const chunks: Chunk[] = [];
  const flushed: Chunk[] = [];
  for (let at = 0; at < samples.length; at += 128) chunker.push(samples.subarray(at, at + 128), (c) => chunks.push(c));
  chunker.flush((c) => flushed.push(c));
  return { chunks, flushed };
}

const samplesIn = (chunks: Chunk[]): number => chunks.reduce((n, c) => n + c.pcm.length / 2, 0);

test.each([16_000, 44_100, 48_000])('nothing of what was captured at %i Hz is lost', (rate) => {
  const { chunks, flushed } = run(rate, new Float32Array(rate + 777));
  expect(samplesIn([...chunks, ...flushed])).toBe(Math.ceil(((rate + 777) * 16_000) / rate));
  expect(chunks.every((c) => c.pcm.length === chunkSamples * 2)).toBe(true);
});

test('at 16 kHz the samples pass as they are', () => {
  const samples = Float32Array.from({ length: 400 }, (_, i) => Math.sin(i / 5));
  const { chunks, flushed } = run(16_000, samples);
  expect(chunks).toHaveLength(1);
  expect(flushed).toHaveLength(1);
  const bytes = [...chunks, ...flushed].flatMap((c) => [...c.pcm]);
  expect(bytes).toEqual([...pcm16(samples)]);
});

test('chunks do not share memory: each is handed to another thread', () => {
  const { chunks } = run(16_000, new Float32Array(chunkSamples * 2).fill(0.5));
  expect(chunks[0]!.pcm.buffer).not.toBe(chunks[1]!.pcm.buffer);
});

test('PCM16 is little-endian and does not wrap', () => {
  expect([...pcm16(Float32Array.of(0, 1, -1, 2, -2, 0.5))]).toEqual([0, 0, 255, 127, 0, 128, 255, 127, 0, 128, 0, 64]);
});

test('level: silence is 0, a loud voice near 1, and it grows with loudness', () => {
  expect(level(new Float32Array(320))).toBe(0);
  expect(level(new Float32Array(0))).toBe(0);
  expect(level(new Float32Array(320).fill(0.5))).toBeCloseTo(1, 1);
  const quiet = level(new Float32Array(320).fill(0.01));
  expect(quiet).toBeGreaterThan(0.2);
  expect(quiet).toBeLessThan(0.5);
});
