import { beforeEach, describe, expect, test } from 'vitest';
import { base64 } from '../client/base64';
import { FakeStore, FakeTimers } from '../client/fakes';
import { FakePlayer } from './fakes';
import { keepPlayed, takePlayed } from './played';
import { Speaker, type Played } from './speaker';

const chunk = base64(new Uint8Array(1920)); // 40 ms

let timers: FakeTimers;
let player: FakePlayer;
let speaker: Speaker;
let acks: [id: string, ms: number][];
let played: number[];
let there: boolean;

function make(): Speaker {
  timers = new FakeTimers();
  player = new FakePlayer();
  acks = [];
  played = [];
  there = true;
  return new Speaker({
    timers,
    open: player.open,
    ack: (id, ms) => there && acks.push([id, ms]) > 0,
    onPlayed: (_, ms) => played.push(ms),
    onLevel: () => {},
    onBlocked: () => {},
  });
}

beforeEach(() => (speaker = make()));

/** Sound from one time to another, as the gateway sends it. */
function say(from: number, to: number, responseId = 'r1'): void {
  for (let startMs = from; startMs < to; startMs += 40) speaker.add({ responseId, startMs, chunk, text: '' });
}

/** What was given to the player, in ms. */
const pushed = (): [from: number, to: number][] => player.pushed.map(({ at, length }) => [at / 24, (at + length) / 24]);

/** Lets time go by and plays meanwhile, as the audio thread reports it. */
function play(from: number, to: number): void {
  for (let ms = from; ms < to; ms += 33) {
    timers.advance(33);
    player.play(Math.min(ms + 33, to));
  }
}

describe('acknowledgements', () => {
  test('at least four a second while playing, and no more than ten', () => {
    const times: number[] = [];
    const began = timers.now();
    for (let second = 0; second < 5; second++) {
      say(second * 1000, second * 1000 + 1000);
      for (let ms = 33; ms < 1000; ms += 33) {
        const before = acks.length;
        timers.advance(33);
        player.play(second * 1000 + ms);
        if (acks.length > before) times.push(timers.now() - began);
      }
    }
    const gaps = times.slice(1).map((t, i) => t - times[i]!);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(250);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(100);
    expect(times[0]).toBeLessThanOrEqual(250);
  });

  test('at once when the last of what was sent has been played', () => {
    say(0, 80);
    timers.advance(33);
    player.play(33);
    timers.advance(10);
    player.play(80);
    expect(acks).toEqual([
      ['r1', 33],
      ['r1', 80],
    ]);
  });

  test('never more than has come, and never back', () => {
    say(0, 80);
    player.play(81);
    player.play(50);
    expect(acks).toEqual([['r1', 80]]);
    expect(played).toEqual([80]);
  });

  test('what is not heard here counts when it has come, and is not played', () => {
    speaker.mute(true);
    say(0, 120);
    expect(acks.map(([, ms]) => ms)).toEqual([40, 80, 120]);
    expect(player.pushed).toEqual([]);
  });

  test('muted in the middle: silence, and all that came counts; then aloud again', () => {
    say(0, 200);
    play(0, 100);
    speaker.mute(true);
    expect(player.cuts).toBe(1);
    expect(acks.at(-1)).toEqual(['r1', 200]);
    speaker.mute(false);
    say(200, 240);
    expect(pushed().at(-1)).toEqual([200, 240]);
  });

  test('where nothing can be played, all that came counts', () => {
    say(0, 80);
    player.events!.onBroken();
    expect(acks).toEqual([['r1', 80]]);
    say(80, 120);
    expect(acks.at(-1)).toEqual(['r1', 120]);
    expect(speaker.aloud).toBe(false);
  });
});

describe('a cut', () => {
  test('empties the player at once, and then says exactly what was played', async () => {
    say(0, 400);
    play(0, 100);
    player.rendered = 117;
    const silence = speaker.cut('r1');
    expect(player.cuts).toBe(1);
    expect(await silence).toEqual({ responseId: 'r1', playedMs: 117 });
  });

  test('nothing of the answer is played after it', async () => {
    say(0, 200);
    await speaker.cut('r1');
    say(200, 400);
    expect(pushed().at(-1)).toEqual([160, 200]);
    expect(speaker.cut('r1')).toBeNull();
  });

  test('also of one that has not come to its sound', async () => {
    expect(await speaker.cut('r1')).toEqual({ responseId: 'r1', playedMs: 0 });
    say(0, 200);
    expect(player.pushed).toEqual([]);
  });

  test('by the gateway: the same', () => {
    say(0, 200);
    speaker.ended('r1', true);
    expect(player.cuts).toBe(1);
    say(200, 400);
    expect(pushed().at(-1)).toEqual([160, 200]);
  });

  test('an answer that is whole is played to its end', () => {
    say(0, 200);
    speaker.ended('r1', false);
    expect(player.cuts).toBe(0);
    play(0, 200);
    expect(acks.at(-1)).toEqual(['r1', 200]);
  });

  test('is remembered until the gateway has ended the answer', async () => {
    say(0, 200);
    play(0, 99);
    await speaker.cut('r1');
    expect(speaker.unsettled).toEqual({ responseId: 'r1', playedMs: 99 });
    speaker.ended('r1', true);
    expect(speaker.unsettled).toBeNull();
  });

  test('the next answer begins anew', async () => {
    say(0, 200);
    play(0, 99);
    await speaker.cut('r1');
    say(0, 40, 'r2');
    expect(pushed().at(-1)).toEqual([0, 40]);
    player.play(40);
    expect(acks.at(-1)).toEqual(['r2', 40]);
  });
});

describe('a pause', () => {
  test('says exactly what was played, and then nothing more until it is over', async () => {
    say(0, 400);
    play(0, 99);
    player.rendered = 117;
    await speaker.pause();
    expect(player.paused).toBe(true);
    expect(acks.at(-1)).toEqual(['r1', 117]);
    expect(played.at(-1)).toBe(117);
    const told = acks.length;
    say(400, 480);
    timers.advance(60_000);
    expect(acks.length).toBe(told);
    expect(pushed().at(-1)).toEqual([440, 480]);
    speaker.resume();
    expect(player.paused).toBe(false);
    expect(player.cuts).toBe(0);
    play(117, 480);
    expect(acks.at(-1)).toEqual(['r1', 480]);
  });

  test('before the last acknowledgement was due: it is made up for', async () => {
    say(0, 400);
    play(0, 33);
    play(33, 66);
    expect(acks).toEqual([['r1', 33]]);
    await speaker.pause();
    expect(acks.at(-1)).toEqual(['r1', 66]);
    await speaker.pause();
    speaker.resume();
    await speaker.pause();
    expect(acks.length).toBe(2);
  });

  test('ended by the gateway: the rest is not played, and the next answer is', async () => {
    say(0, 400);
    play(0, 99);
    await speaker.pause();
    speaker.ended('r1', true);
    expect(player.cuts).toBe(1);
    speaker.resume();
    say(0, 40, 'r2');
    player.play(40);
    expect(acks.at(-1)).toEqual(['r2', 40]);
  });

  test('begun where nothing plays yet: what opens the output finds it paused', async () => {
    await speaker.pause();
    say(0, 40);
    expect(player.paused).toBe(true);
    speaker.resume();
    expect(player.paused).toBe(false);
  });

  test('a new session begins without it', async () => {
    say(0, 40);
    await speaker.pause();
    speaker.reset();
    expect(player.paused).toBe(false);
  });
});

test('an output that was given back is opened again for what comes', () => {
  say(0, 40);
  speaker.leave();
  expect(player.closed).toBe(1);
  say(40, 80);
  expect(pushed().at(-1)).toEqual([40, 80]);
  expect(player.opened).toBe(2);
});

test('sound that is to come wakes an output that is there, and opens none', () => {
  speaker.expect();
  expect(player.opened).toBe(0);
  say(0, 40);
  speaker.expect();
  expect(player.woken).toBe(1);
});

describe('a session that is resumed', () => {
  test('by the same page: nothing is played twice, nothing is left out', () => {
    say(0, 200);
    there = false;
    play(0, 150);
    there = true;
    speaker.resumed(false, null);
    say(120, 320);
    speaker.caughtUp();
    expect(acks.at(-1)).toEqual(['r1', 150]);
    say(320, 360);
    const all = pushed();
    expect(all.every(([from], i) => from === (all[i - 1]?.[1] ?? 0))).toBe(true);
    expect(all.at(-1)![1]).toBe(360);
    expect(player.cuts).toBe(0);
  });

  test('by a page that was loaded again: it goes on from where the other one stopped, in the middle of a piece', () => {
    speaker.resumed(true, { responseId: 'r2', playedMs: 130 });
    say(0, 200, 'r1');
    speaker.ended('r1', false);
    say(0, 400, 'r2');
    expect(player.pushed).toEqual([]);
    speaker.caughtUp();
    expect(pushed()[0]).toEqual([130, 160]);
    expect(pushed().at(-1)![1]).toBe(400);
    expect(acks).toEqual([['r2', 130]]);
  });

  test('by one that was loaded again and knows nothing: nothing old is played, and the gateway may go on', () => {
    speaker.resumed(true, null);
    say(0, 400);
    speaker.caughtUp();
    expect(player.pushed).toEqual([]);
    expect(acks).toEqual([['r1', 400]]);
    say(400, 440);
    expect(pushed()).toEqual([[400, 440]]);
  });

  test('an answer that was over meanwhile is not played', () => {
    speaker.resumed(true, { responseId: 'r1', playedMs: 80 });
    say(0, 400);
    speaker.ended('r1', true);
    speaker.caughtUp();
    expect(player.pushed).toEqual([]);
    expect(acks).toEqual([]);
  });

  test('an answer that began meanwhile is played from its beginning', () => {
    speaker.resumed(true, { responseId: 'r1', playedMs: 400 });
    say(0, 400, 'r1');
    speaker.ended('r1', false);
    say(0, 80, 'r2');
    speaker.caughtUp();
    expect(pushed()).toEqual([
      [0, 40],
      [40, 80],
    ]);
  });

  test('where the times are cut to whole ms, no sample is lost or doubled', () => {
    const odd = base64(new Uint8Array(2 * 1001)); // 41.7 ms
    for (let i = 0; i < 50; i++) speaker.add({ responseId: 'r1', startMs: Math.floor((i * 1001) / 24), chunk: odd, text: '' });
    expect(player.pushed.map(({ at }) => at)).toEqual(Array.from({ length: 50 }, (_, i) => i * 1001));
  });
});

test('a new session forgets the names of the old one', () => {
  say(0, 80);
  speaker.ended('r1', true);
  speaker.reset();
  say(0, 40);
  expect(pushed().at(-1)).toEqual([0, 40]);
});

describe('what a page leaves for the next one', () => {
  const left: Played = { responseId: 'r3', playedMs: 4200 };

  test('is taken once', () => {
    const store = new FakeStore();
    keepPlayed(store, 's', left);
    expect(takePlayed(store)).toEqual({ sessionId: 's', ...left });
    expect(takePlayed(store)).toBeNull();
  });

  test.each(['', '{}', '[]', 'null', '{"sessionId":1,"responseId":"r1","playedMs":3}', '{"sessionId":"s","responseId":"r1","playedMs":"3"}'])('is nothing where it is %s', (text) => {
    const store = new FakeStore();
    store.setItem('vela.played', text);
    expect(takePlayed(store)).toBeNull();
  });

  test('is nothing where nothing was played, or storage is closed', () => {
    const store = new FakeStore();
    keepPlayed(store, null, left);
    keepPlayed(store, 's', null);
    expect(store.kept.size).toBe(0);
    const fail = (): never => {
      throw new Error('closed');
    };
    const closed = { getItem: fail, setItem: fail, removeItem: fail };
    keepPlayed(closed, 's', left);
    expect(takePlayed(closed)).toBeNull();
  });
});
