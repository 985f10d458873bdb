import type { ClientEvent } from '@vela/protocol';
import type { Chunk } from '../audio/chunker';
import type { Timers } from '../client/line';
import type { Ear } from './ear';
import type { Action, Unsent } from './talk';

/** A press shorter than this was a slip, not speech. */
const shortest = 250;

/** What a deterministic turn sends in place of audio. It is opaque to the gateway. */
const placeholder = 'placeholder';

export interface HoldOptions {
  ear: Ear;
  timers: Timers;
  send(event: ClientEvent): boolean;
  sendAudio(pcm: Chunk['pcm']): boolean;
  commit(): void;
  /** Tells the gateway that what was said so far is no turn. */
  forget(): void;
  dispatch(action: Action): void;
  onLevel(level: number): void;
  /** Whether a press means something by itself, so that only a longer one is a hold; and whether nothing but that. */
  taps(): 'no' | 'or hold' | 'only';
  onTap(): void;
  /** Whether what is captured is sent already while a press may still be a tap. */
  live(): boolean;
  /** Whether a turn may begin now. */
  free(): boolean;
}

type Phase = 'no' | 'pressed' | 'waiting' | 'shell' | 'voice' | 'draining';

/**
 * One hold of the talk control, from the press to the commit. Who calls it has made sure that the control is not off.
 *
 * The audio of a hold begins with the press itself, and ends with what the microphone's worklet had captured at the release.
 */
export class Hold {
  #o: HoldOptions;
  #phase: Phase = 'no';
  #began = 0;
  #sent = 0;
  #number = 0; // which hold it is, so that a late answer of the worklet cannot end another
  #early: Chunk[] = []; // what was captured while a press might have been a tap
  #timer: unknown = null;

  constructor(options: HoldOptions) {
    this.#o = options;
  }

  get held(): boolean {
    return this.#phase === 'shell' || this.#phase === 'voice';
  }

  /** Whether it needs the microphone. */
  get busy(): boolean {
    return this.held || this.#phase === 'draining';
  }

  pressShell(): void {
    if (this.#phase !== 'no') return;
    if (!this.#o.send({ type: 'input_audio.append', payload: { chunk: placeholder } })) return;
    this.#begin('shell');
  }

  pressVoice(deviceId: string): void {
    if (this.#phase !== 'no') return;
    const taps = this.#o.taps();
    if (taps === 'only') return this.#o.onTap();
    if (taps === 'no') return this.#press(deviceId);
    this.#phase = 'pressed';
    this.#early = [];
    this.#timer = this.#o.timers.set(() => {
      this.#phase = 'no';
      if (this.#o.free()) this.#press(deviceId);
    }, shortest);
  }

  #press(deviceId: string): void {
    if (this.#o.ear.isOpen) return this.#begin('voice');
    // The first press is spent on the question of the browser. Later ones wait for the device, and begin the turn when it is there.
    if (this.#o.ear.wasOpen) this.#phase = 'waiting';
    void this.#o.ear.open(deviceId);
  }

  /** The microphone is open. Says whether a press was waiting for it. */
  opened(): boolean {
    if (this.#phase !== 'waiting') return false;
    this.#phase = 'no';
    this.#begin('voice');
    return true;
  }

  /** The microphone did not open. */
  failed(): void {
    if (this.#phase === 'waiting') this.#phase = 'no';
  }

  async release(): Promise<void> {
    if (this.#phase === 'waiting') this.#phase = 'no';
    if (this.#phase === 'pressed') {
      this.#giveUp();
      this.#o.onTap();
    } else if (this.#phase === 'shell') {
      this.#phase = 'no';
      this.#o.dispatch({ type: 'released' });
      this.#o.commit();
    } else if (this.#phase === 'voice') {
      await this.#releaseVoice();
    }
  }

  async #releaseVoice(): Promise<void> {
    this.#o.ear.used();
    if (this.#o.timers.now() - this.#began < shortest) {
      this.#end();
      this.#o.dispatch({ type: 'too short' });
      return;
    }
    const number = this.#number;
    this.#phase = 'draining';
    this.#o.dispatch({ type: 'released' });
    await this.#o.ear.flush();
    if (this.#phase !== 'draining' || this.#number !== number) return; // cancelled meanwhile
    this.#phase = 'no';
    this.#o.commit();
  }

  /** Escape, or the stop control while held: nothing is sent. Says whether there was a hold. */
  discard(): boolean {
    if (this.#giveUp()) return true;
    if (!this.held) return false;
    this.#end();
    this.#o.dispatch({ type: 'discarded' });
    return true;
  }

  /** The hold was broken off by something else than the user: half a sentence is not sent. */
  lose(why: Unsent): void {
    this.#giveUp();
    if (!this.held) return;
    this.#end();
    this.#o.dispatch({ type: 'hold lost', why });
  }

  /** Gives up what is left of a hold without a word, when its turn or its connection is over. */
  forget(): void {
    this.#giveUp();
    this.#phase = 'no';
  }

  /** Takes what the microphone hears, and says whether it is of a hold. */
  take(chunk: Chunk): boolean {
    if (this.#phase === 'pressed' && !this.#o.live()) {
      this.#early.push(chunk);
      return true;
    }
    if (this.#phase !== 'voice' && this.#phase !== 'draining') return false;
    if (this.#phase === 'voice') this.#o.onLevel(chunk.level);
    if (this.#o.sendAudio(chunk.pcm)) this.#sent++;
    return true;
  }

  /** Drops a press that has not become a hold, and says whether there was one. */
  #giveUp(): boolean {
    if (this.#phase !== 'pressed' && this.#phase !== 'waiting') return false;
    this.#o.timers.clear(this.#timer);
    this.#early = [];
    this.#phase = 'no';
    return true;
  }

  #begin(phase: 'shell' | 'voice'): void {
    this.#number++;
    this.#phase = phase;
    const early = this.#early.splice(0);
    this.#began = this.#o.timers.now() - (this.#o.taps() === 'no' ? 0 : shortest);
    this.#sent = phase === 'shell' ? 1 : 0;
    this.#o.dispatch({ type: 'held', kind: phase });
    for (const chunk of early) this.take(chunk);
  }

  /** Ends a hold that is not to be answered. */
  #end(): void {
    this.#phase = 'no';
    this.#o.ear.used();
    if (this.#sent > 0 || this.#o.live()) this.#o.forget();
  }
}
