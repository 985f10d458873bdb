import type { ResponseAudioDeltaPayload } from '@vela/protocol';

/** The sound of an answer, as far as it says which of its words were heard. It is a value. */
export interface Sound {
  /** Oldest first. */
  marks: readonly Mark[];
  /** How much of the answer has been heard, in characters. */
  heard: number;
  /** How much of its sound has been played; null where nobody knows any more. */
  playedMs: number | null;
}

/** By playedMs all words have begun that end before `end`, so all but the last of them were heard. */
interface Mark {
  /** Where the sound ends in which they begin, in ms. */
  at: number;
  /** Where they end in the answer, in characters. */
  end: number;
}

export const unheard: Sound = { marks: [], heard: 0, playedMs: 0 };

/** A millisecond of PCM16 at the rate that was asked for, in characters of base64: 48 bytes, three bytes to four. */
const charsPerMs = 64;

/** With the words that begin in a piece of sound. */
export function sounded(sound: Sound, { startMs, chunk, text }: ResponseAudioDeltaPayload): Sound {
  if (text === '') return sound;
  const end = (sound.marks.at(-1)?.end ?? 0) + text.length;
  return { ...sound, marks: [...sound.marks, { at: startMs + chunk.length / charsPerMs, end }] };
}

/** With what is heard once so much is played. The same value as before, where that is no other word. */
export function playedTo(sound: Sound, playedMs: number): Sound {
  const heard = Math.max(sound.heard, heardBy(sound, playedMs));
  return heard === sound.heard ? sound : { ...sound, heard, playedMs };
}

/** With what this page knows to have played at last, when it was cut off. */
export function playedAtLast(sound: Sound, playedMs: number): Sound {
  return { ...playedTo(sound, playedMs), playedMs: Math.max(sound.playedMs ?? 0, playedMs) };
}

/** How many characters were heard by then. A word is over when the next one has begun. */
function heardBy({ marks }: Sound, playedMs: number): number {
  const begun = marks.findLastIndex(({ at }) => at <= playedMs);
  return begun > 0 ? marks[begun - 1]!.end : 0;
}

/** At its end: as the gateway says, unless this page has played more since it said so. */
export function settledAt(sound: Sound, heardText: string | undefined, playedMs: number): Sound {
  const heard = heardText?.length ?? 0;
  const more = sound.playedMs !== null && sound.playedMs > playedMs;
  return more ? { ...sound, heard: Math.max(heard, sound.heard) } : { ...sound, heard, playedMs };
}
