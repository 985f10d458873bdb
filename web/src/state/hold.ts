import type { ClientEvent } from '@vela/protocol';
import type { Chunk } from '../audio/chunker';
import { MicrophoneError, type MicrophoneEvents, type OpenMicrophone } from '../audio/microphone';
import type { Timers } from '../client/line';
import type { Action, Unsent } from './talk';
import type { MicrophoneState } from './view';

/** A press shorter than this was a slip, not speech. */
const shortest = 250;

/** An open microphone that nobody uses is given back. */
const releaseAfter = 30_000;

/** What a deterministic turn sends in place of audio. It is opaque to the gateway. */
const placeholder = 'placeholder';

export interface HoldOptions {
  timers: Timers;
  send(event: ClientEvent): boolean;
  sendAudio(pcm: Chunk['pcm']): boolean;
  commit(): void;
  /** Tells the gateway that what was said so far is no turn. */
  forget(): void;
  dispatch(action: Action): void;
  onMicrophone(state: MicrophoneState): void;
  onLevel(level: number): void;
  /** Whether a turn is running, which keeps the microphone open. */
  busy(): boolean;
  open(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone>;
}

type Phase = 'no' | 'waiting' | 'shell' | 'voice' | 'draining';

/**
 * One hold of the talk control, from the press to the commit, and the microphone behind it. Who calls it has made sure that a turn may begin.
 *
 * The microphone's worklet runs while the microphone is open, and this drops what is not of a turn: so the audio of a hold begins with the
 * press itself, and ends with what the worklet had captured at the release.
 */
export class Hold {
  #o: HoldOptions;
  #phase: Phase = 'no';
  #began = 0;
  #sent = 0;
  #number = 0; // which hold it is, so that a late answer of the worklet cannot end another
  #microphone: OpenMicrophone | null = null;
  #opening = false;
  #wasOpen = false; // whether the user has allowed it on this page before
  #deviceId = '';
  #idle: unknown = null;

  constructor(options: HoldOptions) {
    this.#o = options;
  }

  get held(): boolean {
    return this.#phase === 'shell' || this.#phase === 'voice';
  }

  pressShell(): void {
    if (this.#phase !== 'no') return;
    if (!this.#o.send({ type: 'input_audio.append', payload: { chunk: placeholder } })) return;
    this.#begin('shell');
  }

  pressVoice(deviceId: string): void {
    if (this.#phase !== 'no') return;
    if (this.#microphone) {
      this.#begin('voice');
      return;
    }
    // The first press is spent on the question of the browser. Later ones wait for the device, and begin the turn when it is there.
    if (this.#wasOpen) this.#phase = 'waiting';
    void this.openMicrophone(deviceId);
  }

  async openMicrophone(deviceId: string): Promise<void> {
    if (this.#opening || this.#microphone) return;
    this.#opening = true;
    this.#deviceId = deviceId;
    this.#o.onMicrophone('opening');
    try {
      const microphone = await this.#o.open(deviceId, { onChunk: (c) => this.#chunk(c), onLost: () => this.#unplugged() });
      this.#opening = false;
      this.#opened(microphone);
    } catch (error) {
      this.#opening = false;
      if (this.#phase === 'waiting') this.#phase = 'no';
      this.#o.onMicrophone(error instanceof MicrophoneError ? error.fault : 'broken');
    }
  }

  #opened(microphone: OpenMicrophone): void {
    this.#microphone = microphone;
    this.#wasOpen = true;
    this.#o.onMicrophone('open');
    this.#releaseLater();
    if (this.#phase === 'waiting') {
      this.#phase = 'no';
      this.#begin('voice');
    } else {
      this.#o.dispatch({ type: 'note', note: 'microphone on' });
    }
  }

  async release(): Promise<void> {
    if (this.#phase === 'waiting') this.#phase = 'no';
    if (this.#phase === 'shell') {
      this.#phase = 'no';
      this.#o.dispatch({ type: 'released' });
      this.#o.commit();
    } else if (this.#phase === 'voice') {
      await this.#releaseVoice();
    }
  }

  async #releaseVoice(): Promise<void> {
    this.#releaseLater();
    if (this.#o.timers.now() - this.#began < shortest) {
      this.#end();
      this.#o.dispatch({ type: 'too short' });
      return;
    }
    const number = this.#number;
    this.#phase = 'draining';
    this.#o.dispatch({ type: 'released' });
    await this.#microphone?.flush();
    if (this.#phase !== 'draining' || this.#number !== number) return; // cancelled meanwhile
    this.#phase = 'no';
    this.#o.commit();
  }

  /** Escape, or the stop control while held: nothing is sent. Says whether there was a hold. */
  discard(): boolean {
    if (this.#phase === 'waiting') {
      this.#phase = 'no';
      return true;
    }
    if (!this.held) return false;
    this.#end();
    this.#o.dispatch({ type: 'discarded' });
    return true;
  }

  /** The hold was broken off by something else than the user: half a sentence is not sent. */
  lose(why: Unsent): void {
    if (this.#phase === 'waiting') this.#phase = 'no';
    if (!this.held) return;
    this.#end();
    this.#o.dispatch({ type: 'hold lost', why });
  }

  /** Gives up what is left of a hold without a word, when its turn or its connection is over. */
  forget(): void {
    this.#phase = 'no';
  }

  closeMicrophone(): void {
    this.#stopIdle();
    this.#microphone?.close();
    if (this.#microphone) this.#o.onMicrophone('closed');
    this.#microphone = null;
  }

  #begin(phase: 'shell' | 'voice'): void {
    this.#number++;
    this.#phase = phase;
    this.#began = this.#o.timers.now();
    this.#sent = phase === 'shell' ? 1 : 0;
    this.#stopIdle();
    this.#o.dispatch({ type: 'held', kind: phase });
  }

  /** Ends a hold that is not to be answered. */
  #end(): void {
    this.#phase = 'no';
    if (this.#microphone) this.#releaseLater();
    if (this.#sent > 0) this.#o.forget();
  }

  #chunk(chunk: Chunk): void {
    if (this.#phase !== 'voice' && this.#phase !== 'draining') return;
    if (this.#phase === 'voice') this.#o.onLevel(chunk.level);
    if (this.#o.sendAudio(chunk.pcm)) this.#sent++;
  }

  #unplugged(): void {
    this.#microphone = null;
    this.#stopIdle();
    this.#o.onMicrophone('closed');
    this.lose('microphone');
  }

  #releaseLater(): void {
    this.#stopIdle();
    this.#idle = this.#o.timers.set(() => {
      if (this.held || this.#phase === 'draining' || this.#o.busy()) this.#releaseLater();
      else this.closeMicrophone();
    }, releaseAfter);
  }

  #stopIdle(): void {
    if (this.#idle !== null) this.#o.timers.clear(this.#idle);
    this.#idle = null;
  }

  /** Another device was chosen: the next press opens it. */
  useDevice(deviceId: string): void {
    if (deviceId !== this.#deviceId && !this.held) this.closeMicrophone();
  }
}

