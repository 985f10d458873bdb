import { expect, test } from 'vitest';
import { LevelTrace, tickMs, ticks } from './levels';

test('newest first, older ones move on, and a gap is silence', () => {
  const trace = new LevelTrace();
  trace.push(0.5, 1000 * tickMs);
  trace.push(0.7, 1001 * tickMs);
  trace.push(0.9, 1004 * tickMs);
  expect([0, 1, 2, 3, 4, 5].map((age) => Math.round(trace.at(age) * 10) / 10)).toEqual([0.9, 0, 0, 0.7, 0.5, 0]);
});

test('the loudest of a tick counts', () => {
  const trace = new LevelTrace();
  trace.push(0.2, 100.1 * tickMs);
  trace.push(0.8, 100.5 * tickMs);
  trace.push(0.1, 100.9 * tickMs);
  expect(trace.at(0)).toBeCloseTo(0.8);
});

test('what is older than the ring is gone, and clear() empties it', () => {
  const trace = new LevelTrace();
  trace.push(1, 10 * tickMs);
  trace.push(0.5, (10 + ticks) * tickMs);
  expect(Array.from({ length: ticks }, (_, age) => trace.at(age)).filter((l) => l > 0)).toEqual([0.5]);
  trace.clear();
  expect(trace.at(0)).toBe(0);
});
