import type { ResponseAudioDeltaPayload } from '@vela/protocol';
import { samplesOf } from '../audio/pcm';
import { soundRate } from '../audio/playback';
import type { Player, PlayerEvents } from '../audio/player';
import { fromBase64 } from '../client/base64';
import type { Timers } from '../client/line';

/** How often the gateway is told what was played. It sends no more than 0.4 s ahead of that, so this comes off the time the net may take. */
const ackEvery = 100;

/** The gateway counts in whole milliseconds. */
const perMs = soundRate / 1000;

/** Answers whose end is remembered; what comes late belongs to the last one. */
const endsKept = 8;

export interface SpeakerOptions {
  timers: Timers;
  open(events: PlayerEvents): Player;
  /** Tells the gateway, and says whether there was somebody to tell. */
  ack(responseId: string, playedMs: number): boolean;
  onPlayed(responseId: string, playedMs: number): void;
  onLevel(level: number): void;
  onBlocked(blocked: boolean): void;
}

/** How far an answer has been played: what a page leaves for itself when it is loaded again. */
export interface Played {
  responseId: string;
  playedMs: number;
}

interface Answer {
  id: string;
  /** Where the sound ends that has come, in samples. */
  end: number;
  playedMs: number;
  ackedMs: number;
  ackedAt: number;
}

/**
 * The sound of the answers: it plays each millisecond once, and tells the gateway what was played.
 *
 * Sound comes by add(), in order; ended() and cut() are the two ways in which an answer falls silent for good, pause() is the one in which it
 * does so until resume(). While what was missed is told again, from resumed() to caughtUp(), nothing is played: the answer may have ended meanwhile.
 */
export class Speaker {
  #o: SpeakerOptions;
  #player: Player | null = null;
  #broken = false;
  #muted = false;
  #paused = false;
  #answer: Answer | null = null;
  #ended: string[] = [];
  #before: Played | null = null; // of the page that was here before
  #old = false; // whether what is told again is not to be played
  #again: { samples: Float32Array<ArrayBuffer>; at: number }[] | null = null;
  #unsettled: Played | null = null; // cut here, and not yet over in the gateway

  constructor(options: SpeakerOptions) {
    this.#o = options;
  }

  /** Whether answers are heard here; those that are not count as heard when they have come. */
  get aloud(): boolean {
    return !this.#muted && !this.#broken;
  }

  /** How far the last answer was played. */
  get played(): Played | null {
    return this.#answer && { responseId: this.#answer.id, playedMs: this.#answer.playedMs };
  }

  /** The answer that was cut here and still runs in the gateway, which has not heard of it. */
  get unsettled(): Played | null {
    return this.#unsettled;
  }

  /** To be called while somebody presses something: before that, browsers let no sound out. */
  wake(): void {
    if (!this.aloud) return;
    this.#player ??= this.#open();
    this.#player.wake();
  }

  /** An answer comes: the output is woken before its first sound is there. */
  expect(): void {
    if (this.aloud) this.#player?.wake();
  }

  /** The page goes, or the session is over for good: the output is given back. A press, or sound, opens it again. */
  leave(): void {
    this.#player?.close();
    this.#player = null;
  }

  mute(muted: boolean): void {
    this.#muted = muted;
    if (!muted || !this.#answer) return;
    void this.#player?.cut();
    this.#pass(this.#answer);
  }

  /**
   * A session is taken up again. A page that has just been loaded hears all of it once more: `before` is how far the one that was here has
   * played, and without it nothing old is played.
   */
  resumed(loaded: boolean, before: Played | null): void {
    this.#again = [];
    this.#before = before;
    this.#old = loaded && before === null;
  }

  /** All that was missed is here. */
  caughtUp(): void {
    const pieces = this.#again ?? [];
    this.#again = this.#before = null;
    this.#old = false;
    const answer = this.#answer;
    if (!answer || this.#ended.includes(answer.id)) return;
    for (const { samples, at } of pieces) this.#play(samples, at);
    // The gateway may not have heard of it, and sends nothing more until it has.
    this.#ack(answer);
  }

  add(delta: ResponseAudioDeltaPayload): void {
    const { responseId: id, startMs } = delta;
    if (this.#ended.includes(id)) return;
    const bytes = fromBase64(delta.chunk);
    if (!bytes) return;
    const answer = this.#answer?.id === id ? this.#answer : this.#begin(id);
    const pcm = samplesOf(bytes);
    const { samples, at } = unplayed(pcm, Math.round(startMs * perMs), answer.end);
    if (samples.length === 0) return;
    answer.end = at + samples.length;
    if (this.#again && (this.#old || !this.aloud)) answer.playedMs = endMs(answer);
    else if (this.#again) this.#again.push({ samples, at });
    else if (this.aloud) this.#play(samples, at);
    else this.#pass(answer);
  }

  /** The gateway says that it is over: whole, when what came is still played, or cut. */
  ended(responseId: string, cut: boolean): void {
    this.#ended = [...this.#ended, responseId].slice(-endsKept);
    if (this.#unsettled?.responseId === responseId) this.#unsettled = null;
    if (this.#answer?.id !== responseId) return;
    if (cut) void this.#silence(this.#answer);
  }

  /** Somebody speaks, and may mean it: the answer falls silent where it is, until resume() or its end. The gateway hears exactly where. */
  async pause(): Promise<void> {
    if (this.#paused) return;
    this.#paused = true;
    const answer = this.#answer;
    const rendered = (await this.#player?.pause()) ?? 0;
    if (!answer || this.#answer !== answer) return;
    if (rendered > answer.playedMs) {
      answer.playedMs = Math.min(rendered, endMs(answer));
      this.#o.onPlayed(answer.id, answer.playedMs);
    }
    if (answer.playedMs > answer.ackedMs) this.#ack(answer);
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#player?.resume();
  }

  /** Falls silent at once, and stays so for the rest of the answer that runs. Says how much of that was played; null where none does. */
  cut(running: string | null): Promise<Played> | null {
    const answer = this.#answer;
    const silence = answer && this.#silence(answer);
    if (running === null || this.#ended.includes(running)) return null;
    this.#ended = [...this.#ended, running].slice(-endsKept);
    this.#unsettled = { responseId: running, playedMs: answer?.id === running ? answer.playedMs : 0 };
    return answer?.id === running ? silence : Promise.resolve(this.#unsettled);
  }

  /** The session is over. The names of the answers begin anew. */
  reset(): void {
    if (this.#answer) void this.#player?.cut();
    this.#answer = this.#before = this.#again = this.#unsettled = null;
    this.#old = false;
    this.#ended = [];
    this.resume();
  }

  async #silence(answer: Answer): Promise<Played> {
    const rendered = (await this.#player?.cut()) ?? 0;
    answer.playedMs = Math.max(answer.playedMs, Math.min(rendered, endMs(answer)));
    const played = { responseId: answer.id, playedMs: answer.playedMs };
    if (this.#unsettled?.responseId === answer.id) this.#unsettled = played;
    return played;
  }

  #begin(id: string): Answer {
    if (this.#answer) void this.#player?.cut();
    if (this.#again) this.#again = [];
    const playedMs = this.#before?.responseId === id ? this.#before.playedMs : 0;
    this.#answer = { id, end: playedMs * perMs, playedMs, ackedMs: 0, ackedAt: -Infinity };
    return this.#answer;
  }

  #open(): Player {
    const player = this.#o.open({
      onPlayed: (ms) => this.#onPlayed(ms),
      onLevel: (level) => this.#o.onLevel(level),
      onBlocked: (blocked) => this.#o.onBlocked(blocked),
      onBroken: () => {
        this.#broken = true;
        if (this.#answer) this.#pass(this.#answer);
      },
    });
    if (this.#paused) void player.pause();
    return player;
  }

  #play(samples: Float32Array<ArrayBuffer>, at: number): void {
    this.#player ??= this.#open();
    this.#player.push(samples, at);
  }

  /** It is not played here, and counts as if it were. */
  #pass(answer: Answer): void {
    answer.playedMs = endMs(answer);
    this.#ack(answer);
  }

  #onPlayed(ms: number): void {
    const answer = this.#answer;
    if (!answer || ms <= answer.playedMs) return;
    answer.playedMs = Math.min(ms, endMs(answer));
    this.#o.onPlayed(answer.id, answer.playedMs);
    if (answer.playedMs >= endMs(answer) || this.#o.timers.now() - answer.ackedAt >= ackEvery) this.#ack(answer);
  }

  #ack(answer: Answer): void {
    if (answer.playedMs === 0 || !this.#o.ack(answer.id, answer.playedMs)) return;
    answer.ackedMs = answer.playedMs;
    answer.ackedAt = this.#o.timers.now();
  }
}

function endMs({ end }: Answer): number {
  return Math.floor(end / perMs);
}

/** What of some sound comes after all that has come, and where it lies. Where it says to begin is up to a millisecond too early. */
function unplayed(pcm: Float32Array<ArrayBuffer>, start: number, end: number): { samples: Float32Array<ArrayBuffer>; at: number } {
  const gap = start - end;
  if (gap > -perMs && gap <= 0) return { samples: pcm, at: end };
  return gap > 0 ? { samples: pcm, at: start } : { samples: pcm.slice(Math.min(pcm.length, -gap)), at: end };
}
