import { describe, expect, test } from 'vitest';
import { Resampler } from './resampler';

function tone(hz: number, rate: number, seconds: number): Float32Array {
  return Float32Array.from({ length: Math.round(rate * seconds) }, (_, i) => Math.sin((2 * Math.PI * hz * i) / rate));
}

function resample(input: Float32Array, from: number, to: number, piece = input.length): Float32Array {
  const r = new Resampler(from, to);
  const out: number[] = [];
  for (let at = 0; at < input.length; at += piece) out.push(...r.push(input.subarray(at, at + piece)));
  out.push(...r.flush());
  return Float32Array.from(out);
}

/** The level in dB below a full tone, without the ends, where a tone that begins and stops is no tone. */
function db(samples: Float32Array): number {
  const inner = samples.subarray(800, samples.length - 800);
  const power = inner.reduce((sum, s) => sum + s * s, 0) / inner.length;
  return 10 * Math.log10(power / 0.5 + 1e-20);
}

describe.each([48_000, 44_100, 96_000, 22_050, 8_000, 32_000])('%i Hz to 16 kHz', (from) => {
  test.each([1, 127, 128, 1000, 4410, 48_000])('%i samples give exactly their share', (n) => {
    expect(resample(new Float32Array(n), from, 16_000, 128)).toHaveLength(Math.ceil((n * 16_000) / from));
  });

  test('the pieces that a stream comes in make no difference', () => {
    const input = tone(440, from, 0.25);
    const whole = resample(input, from, 16_000);
    expect(resample(input, from, 16_000, 128)).toEqual(whole);
    expect(resample(input, from, 16_000, 7)).toEqual(whole);
  });

  test('speech passes, at its time and its loudness', () => {
    for (const hz of [200, 1000, 3000]) {
      const out = resample(tone(hz, from, 0.5), from, 16_000, 128);
      const want = tone(hz, 16_000, 0.5);
      let worst = 0;
      for (let i = 800; i < want.length - 800; i++) worst = Math.max(worst, Math.abs(out[i]! - want[i]!));
      expect(worst).toBeLessThan(0.002);
    }
  });
});

describe.each([48_000, 44_100, 96_000])('%i Hz: what 16 kHz cannot carry', (from) => {
  test.each([8_100, 8_500, 9_000, 10_000, 12_000, 15_000, 16_000, 20_000])('%i Hz does not fold back', (hz) => {
    expect(db(resample(tone(hz, from, 0.5), from, 16_000, 128))).toBeLessThan(-75);
  });

  test('6.5 kHz still passes', () => {
    expect(db(resample(tone(6500, from, 0.5), from, 16_000, 128))).toBeGreaterThan(-0.1);
  });
});

test('after a flush the stream begins anew', () => {
  const r = new Resampler(48_000, 16_000);
  const first = [...r.push(tone(440, 48_000, 0.1)), ...r.flush()];
  const again = [...r.push(tone(440, 48_000, 0.1)), ...r.flush()];
  expect(again).toEqual(first);
});

test('a long stream keeps its place', () => {
  const r = new Resampler(44_100, 16_000);
  let made = 0;
  for (let i = 0; i < 44_100 * 20; i += 128) made += r.push(new Float32Array(Math.min(128, 44_100 * 20 - i))).length;
  expect(made + r.flush().length).toBe(16_000 * 20);
});
