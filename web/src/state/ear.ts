import type { Chunk } from '../audio/chunker';
import { MicrophoneError, type MicrophoneEvents, type OpenMicrophone } from '../audio/microphone';
import type { Timers } from '../client/line';
import type { MicrophoneState } from './view';

/** An open microphone that nobody uses is given back. */
const releaseAfter = 30_000;

export interface EarOptions {
  timers: Timers;
  open(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone>;
  onState(state: MicrophoneState): void;
  onOpen(): void;
  onChunk(chunk: Chunk): void;
  /** The device went away, or the user took the permission back. */
  onLost(): void;
  /** Whether somebody uses it, which keeps it open. */
  busy(): boolean;
}

/**
 * The microphone of the page: opened when somebody wants it, given back when nobody does.
 *
 * Its worklet runs while it is open, and all of it is handed on; whoever takes it drops what is not of a turn.
 */
export class Ear {
  #o: EarOptions;
  #microphone: OpenMicrophone | null = null;
  #opening = false;
  #wasOpen = false;
  #deviceId = '';
  #idle: unknown = null;

  constructor(options: EarOptions) {
    this.#o = options;
  }

  get isOpen(): boolean {
    return this.#microphone !== null;
  }

  /** Whether the user has allowed it on this page before. */
  get wasOpen(): boolean {
    return this.#wasOpen;
  }

  async open(deviceId: string): Promise<void> {
    if (this.#opening || this.#microphone) return;
    this.#opening = true;
    this.#deviceId = deviceId;
    this.#o.onState('opening');
    try {
      this.#microphone = await this.#o.open(deviceId, { onChunk: (chunk) => this.#o.onChunk(chunk), onLost: () => this.#lost() });
    } catch (error) {
      this.#o.onState(error instanceof MicrophoneError ? error.fault : 'broken');
      return;
    } finally {
      this.#opening = false;
    }
    this.#wasOpen = true;
    this.used();
    this.#o.onState('open');
    this.#o.onOpen();
  }

  /** Hands out everything that was captured before the call, then resolves. */
  async flush(): Promise<void> {
    await this.#microphone?.flush();
  }

  close(): void {
    this.#o.timers.clear(this.#idle);
    this.#microphone?.close();
    if (this.#microphone) this.#o.onState('closed');
    this.#microphone = null;
  }

  /** Somebody was using it until now. */
  used(): void {
    this.#o.timers.clear(this.#idle);
    this.#idle = this.#o.timers.set(() => {
      if (this.#o.busy()) this.used();
      else this.close();
    }, releaseAfter);
  }

  /** Another device was chosen: the present one, if it is another, is given back. */
  useDevice(deviceId: string): void {
    if (deviceId !== this.#deviceId) this.close();
  }

  #lost(): void {
    this.#o.timers.clear(this.#idle);
    this.#microphone = null;
    this.#o.onState('closed');
    this.#o.onLost();
  }
}
