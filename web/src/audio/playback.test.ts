import { describe, expect, test } from 'vitest';
import { fadeFrames, Playback, soundRate } from './playback';

/** Renders quanta until nothing is left, or so many. */
function render(playback: Playback, quanta = Infinity): { out: number[]; sound: number } {
  const out: number[] = [];
  let sound = 0;
  for (let i = 0; i < quanta && (quanta !== Infinity || !playback.dry); i++) {
    const quantum = new Float32Array(128).fill(9); // what is not written shows
    sound += playback.render(quantum);
    out.push(...quantum);
  }
  return { out, sound };
}

const ramp = (from: number, length: number): Float32Array => Float32Array.from({ length }, (_, i) => (from + i) / 32768);
const tone = (from: number, length: number): Float32Array => Float32Array.from({ length }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * (from + i)) / soundRate));

describe('at the rate of the sound', () => {
  test('pieces are played in order, and what is missing is silence that was not played', () => {
    const playback = new Playback(soundRate);
    playback.push(ramp(1, 100), 0);
    playback.push(ramp(101, 100), 100);
    const { out, sound } = render(playback, 3);
    expect(out.slice(0, 200)).toEqual([...ramp(1, 200)]);
    expect(out.slice(200)).toEqual(new Array(184).fill(0));
    expect(sound).toBe(200);
    expect(playback.played).toBe(200);
    expect(playback.dry).toBe(true);
    playback.push(ramp(201, 128), 200);
    expect(render(playback, 1)).toEqual({ out: [...ramp(201, 128)], sound: 128 });
    expect(playback.played).toBe(328);
  });

  test('a piece that lies further on moves the position there, and not before it is played', () => {
    const playback = new Playback(soundRate);
    playback.push(ramp(0, 64), 4800);
    expect(playback.played).toBe(4800);
    playback.push(ramp(0, 64), 9600);
    render(playback, 1);
    expect(playback.played).toBe(9664);
  });

  test('no more than two seconds wait', () => {
    const playback = new Playback(soundRate);
    for (let i = 0; i < 2; i++) expect(playback.push(new Float32Array(soundRate), i * soundRate)).toBe(true);
    expect(playback.push(new Float32Array(1), 2 * soundRate)).toBe(false);
    render(playback, 1);
    expect(playback.push(new Float32Array(128), 2 * soundRate)).toBe(true);
  });

  test('a cut is a fade within one quantum, then silence; it says what was played', () => {
    const playback = new Playback(soundRate);
    playback.push(new Float32Array(4800).fill(0.5), 0);
    render(playback, 3);
    expect(playback.cut()).toBe(384);
    const { out, sound } = render(playback, 4);
    expect(sound).toBe(0);
    expect(out[0]).toBeCloseTo(0.5, 1);
    for (let i = 1; i < fadeFrames; i++) expect(out[i]!).toBeLessThan(out[i - 1]!);
    expect(out.slice(fadeFrames - 1)).toEqual(new Array(128 * 4 - fadeFrames + 1).fill(0));
    expect(playback.dry).toBe(true);
  });

  test('what comes after a cut begins anew, behind the fade', () => {
    const playback = new Playback(soundRate);
    playback.push(new Float32Array(4800).fill(0.5), 0);
    render(playback, 1);
    playback.cut();
    playback.push(ramp(1, 128), 0);
    expect(playback.played).toBe(0);
    expect(render(playback, 1).sound).toBe(0);
    expect(render(playback, 1)).toEqual({ out: [...ramp(1, 128)], sound: 128 });
    expect(playback.played).toBe(128);
  });

  test('a cut of nothing is silence', () => {
    const playback = new Playback(soundRate);
    expect(playback.cut()).toBe(0);
    expect(render(playback, 2).out).toEqual(new Array(256).fill(0));
  });
});

describe('a pause', () => {
  const whole = ramp(1, 1000);

  /** What was heard when some frames were faded at some place and rose again: the fade and the rise laid upon each other. */
  function joined(before: number[], after: number[], faded: number): number[] {
    const at = before.length - faded;
    return [...before.slice(0, at), ...after.map((s, i) => s + (i < faded ? before[at + i]! : 0))];
  }

  test.each([1, 3, 7])('after %i quanta: what fades is silent within one, rises again, and nothing is lost or heard twice', (quanta) => {
    const playback = new Playback(soundRate);
    for (let at = 0; at < 1000; at += 100) playback.push(whole.slice(at, at + 100), at);
    const before = render(playback, quanta).out;
    expect(playback.pause()).toBe(quanta * 128);
    const fade = render(playback, 3);
    expect(fade.sound).toBe(0);
    expect(fade.out.slice(128)).toEqual(new Array(256).fill(0));
    const length = Math.min(128, 1000 - quanta * 128);
    expect(fade.out[length - 1]).toBe(0);
    expect(playback.played).toBe(quanta * 128);
    playback.resume();
    const after = render(playback).out;
    const heard = joined([...before, ...fade.out.slice(0, length)], after, length);
    whole.forEach((sample, i) => expect(heard[i]).toBeCloseTo(sample, 6));
    expect(heard.slice(1000).every((sample) => sample === 0)).toBe(true);
    expect(playback.played).toBe(1000);
  });

  test('the second one says the same as the first', () => {
    const playback = new Playback(soundRate);
    playback.push(whole, 0);
    render(playback, 2);
    expect([playback.pause(), playback.pause()]).toEqual([256, 256]);
  });

  test('over before anything was rendered: not a sample is different', () => {
    const playback = new Playback(soundRate);
    playback.push(whole, 0);
    render(playback, 1);
    playback.pause();
    playback.resume();
    playback.pause();
    playback.resume();
    expect(render(playback).out.slice(0, 872)).toEqual([...whole.slice(128)]);
  });

  test('again before the sound has risen: silence goes on, and then it rises once', () => {
    const playback = new Playback(soundRate);
    playback.push(whole, 0);
    playback.pause();
    const fade = render(playback, 1).out;
    playback.resume();
    playback.pause();
    expect(render(playback, 2).out).toEqual(new Array(256).fill(0));
    playback.resume();
    const heard = joined(fade, render(playback).out, 128);
    whole.forEach((sample, i) => expect(heard[i]).toBeCloseTo(sample, 6));
  });

  test('takes what comes meanwhile, and plays it after', () => {
    const playback = new Playback(soundRate);
    expect(playback.pause()).toBe(0);
    playback.push(whole, 0);
    expect(render(playback, 2)).toEqual({ out: new Array(256).fill(0), sound: 0 });
    playback.resume();
    expect(render(playback).out.slice(0, 1000)).toEqual([...whole]);
  });

  test('ended by a cut: silence without another fade, and what comes next does not rise', () => {
    const playback = new Playback(soundRate);
    playback.push(whole, 0);
    render(playback, 2);
    playback.pause();
    render(playback, 1);
    expect(playback.cut()).toBe(256);
    expect(render(playback, 2).out).toEqual(new Array(256).fill(0));
    playback.push(ramp(5, 128), 0);
    expect(render(playback, 1).sound).toBe(0);
    playback.resume();
    expect(render(playback, 1)).toEqual({ out: [...ramp(5, 128)], sound: 128 });
  });

  test('behind the fade of a cut: no second one', () => {
    const playback = new Playback(soundRate);
    playback.push(new Float32Array(400).fill(0.5), 0);
    playback.cut();
    playback.push(ramp(1, 400), 0);
    playback.pause();
    expect(render(playback, 2).out.slice(127)).toEqual(new Array(129).fill(0));
    playback.resume();
    expect(render(playback).out.slice(0, 400)).toEqual([...ramp(1, 400)]);
  });
});

describe.each([48_000, 44_100, 16_000])('at %i Hz', (rate) => {
  test('the sound is resampled, and all of it is played', () => {
    const playback = new Playback(rate);
    const piece = 960;
    for (let i = 0; i < 25; i++) playback.push(tone(i * piece, piece), i * piece);
    const { out, sound } = render(playback);
    expect(sound).toBe(rate);
    expect(playback.played).toBeCloseTo(soundRate, 0);
    // Away from the ends, where there is nothing on one side, it is the same tone.
    for (let i = 200; i < rate - 200; i += 7) expect(Math.abs(out[i]! - 0.5 * Math.sin((2 * Math.PI * 440 * i) / rate))).toBeLessThan(0.002);
  });

  test('paused and resumed at any time: with the fades laid upon each other it is the same sound', () => {
    const straight = new Playback(rate);
    const paused = new Playback(rate);
    for (let at = 0; at < 24_000; at += 960) for (const p of [straight, paused]) p.push(tone(at, 960), at);
    const want = render(straight).out;
    let got: number[] = [];
    for (const quanta of [5, 1, 40, 17]) {
      got.push(...render(paused, quanta).out);
      const at = paused.pause();
      const fade = render(paused, 1).out;
      expect(render(paused, 2).out.every((s) => s === 0)).toBe(true);
      expect(paused.played).toBe(at);
      paused.resume();
      const risen = render(paused, 1).out;
      got.push(...risen.map((s, i) => s + fade[i]!));
    }
    got = got.concat(render(paused).out);
    const rounded = (samples: number[]): number[] => samples.map((s) => Math.round(s * 32768) + 0);
    expect(rounded(got)).toEqual(rounded(want));
    expect(paused.played).toBe(straight.played);
  });

  test('the position is where the sound lies, over gaps and late pieces', () => {
    const playback = new Playback(rate);
    playback.push(tone(0, 960), 24_000);
    expect(render(playback).sound).toBe(Math.ceil((960 * rate) / soundRate));
    expect(playback.played).toBeGreaterThan(24_959);
    expect(playback.played).toBeLessThan(24_962);
    playback.push(tone(960, 960), 24_960);
    render(playback);
    expect(playback.played).toBeGreaterThan(25_919);
    expect(playback.played).toBeLessThan(25_922);
  });
});
