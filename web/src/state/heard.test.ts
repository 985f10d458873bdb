import { describe, expect, test } from 'vitest';
import { playedAtLast, playedTo, settledAt, sounded, unheard, type Sound } from './heard';

/** 40 ms of sound. */
const chunk = 'A'.repeat(40 * 64);

const answer = 'One two three four.';

/** A word begins in each third piece. */
function spoken(): Sound {
  let sound = unheard;
  const words = ['One', ' two', ' three', ' four.'];
  for (let i = 0; i < 12; i++) sound = sounded(sound, { responseId: 'r1', chunk, startMs: i * 40, text: i % 3 === 0 ? words[i / 3]! : '' });
  return sound;
}

const heard = (ms: number): string => answer.slice(0, playedTo(spoken(), ms).heard);

test.each([
  [0, ''],
  [100, ''],
  [119, ''],
  [159, ''], // the next word has begun somewhere in this piece
  [160, 'One'],
  [279, 'One'],
  [280, 'One two'],
  [400, 'One two three'],
  [480, 'One two three'], // nobody has said that the last word is over
])('a word is heard when the next one has begun: after %i ms "%s"', (ms, words) => {
  expect(heard(ms)).toBe(words);
});

test('what is played and is no further word changes nothing', () => {
  const sound = playedTo(spoken(), 170);
  expect(playedTo(sound, 200)).toBe(sound);
  expect(playedTo(sound, 10)).toBe(sound);
});

describe('at the end', () => {
  test('the gateway says what was heard', () => {
    const sound = settledAt(playedTo(spoken(), 170), 'One two', 250);
    expect([sound.heard, sound.playedMs]).toEqual([7, 250]);
  });

  test('it may know more words than this page', () => {
    expect(settledAt(playedAtLast(spoken(), 175), 'One two', 170).heard).toBe(7);
  });

  test('but not what was played since it was told', () => {
    const sound = settledAt(playedAtLast(spoken(), 290), 'One', 170);
    expect([answer.slice(0, sound.heard), sound.playedMs]).toEqual(['One two', 290]);
  });

  test('nor what is told later still', () => {
    const sound = playedAtLast(settledAt(spoken(), 'One', 170), 290);
    expect([answer.slice(0, sound.heard), sound.playedMs]).toEqual(['One two', 290]);
  });
});
