import { signal, type ReadonlySignal } from '@preact/signals';
import { ask, type Asker } from '../client/ask';
import { midiSignal, type MidiSignal } from './message';

/** What is used of a MIDI input of the browser's; a test hands in its own. */
export interface MidiInput {
  readonly id: string;
  readonly name: string | null;
  readonly state: string;
  onmidimessage: ((event: { data: Uint8Array | null }) => void) | null;
}

/** What is used of the browser's MIDI access. */
export interface MidiAccess {
  readonly inputs: { forEach(each: (input: MidiInput) => void): void };
  onstatechange: (() => void) | null;
}

/** Asks the browser for its MIDI devices; absent where it has none to give. */
export type RequestMidi = (() => Promise<MidiAccess>) | null;

/** How it is with the devices of this browser. */
export interface MidiState {
  state: 'off' | 'asking' | 'on' | 'refused' | 'none';
  devices: readonly { id: string; name: string }[];
  /** Signals that the gateway took. */
  sent: number;
  /** Signals that came faster than it took them, or that it refused. */
  lost: number;
}

/** How many signals wait for the gateway at most. What comes beyond is lost, and counted. */
export const mostWaiting = 256;

/**
 * Forwards what the MIDI devices of this browser play to the gateway, as signals, in order: one is under way at a time. It begins when somebody asks
 * for it, and goes on, whatever view is shown, until stop().
 */
export class Forwarder {
  #asker: Asker;
  #request: RequestMidi;
  #now: () => number;
  #access: MidiAccess | null = null;
  #waiting: MidiSignal[] = [];
  #sending = false;
  #state: ReturnType<typeof signal<MidiState>>;

  constructor(asker: Asker, request: RequestMidi, now: () => number) {
    this.#asker = asker;
    this.#request = request;
    this.#now = now;
    this.#state = signal<MidiState>({ state: request ? 'off' : 'none', devices: [], sent: 0, lost: 0 });
  }

  get state(): ReadonlySignal<MidiState> {
    return this.#state as ReadonlySignal<MidiState>;
  }

  /** To be called by a press: the browser asks the user. */
  async start(): Promise<void> {
    const { state } = this.state.peek();
    if (!this.#request || state === 'asking' || state === 'on') return;
    this.#set({ state: 'asking' });
    try {
      this.#access = await this.#request();
    } catch {
      return this.#set({ state: 'refused' });
    }
    this.#access.onstatechange = () => this.#listen();
    this.#set({ state: 'on' });
    this.#listen();
  }

  stop(): void {
    if (!this.#access) return;
    this.#access.onstatechange = null;
    this.#access.inputs.forEach((input) => (input.onmidimessage = null));
    this.#access = null;
    this.#waiting = [];
    this.#set({ state: 'off', devices: [] });
  }

  /** To all that are there now. */
  #listen(): void {
    const devices: { id: string; name: string }[] = [];
    this.#access!.inputs.forEach((input) => {
      if (input.state !== 'connected') return;
      const name = (input.name ?? '').slice(0, 128) || 'MIDI device';
      devices.push({ id: input.id, name });
      input.onmidimessage = ({ data }) => {
        const made = data && midiSignal(data, name, this.#now());
        if (made) this.#offer(made);
      };
    });
    this.#set({ devices });
  }

  #offer(one: MidiSignal): void {
    if (this.#waiting.length >= mostWaiting) return this.#set({ lost: this.state.peek().lost + 1 });
    this.#waiting.push(one);
    if (!this.#sending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#sending = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const { ok } = await ask(this.#asker, '/api/signal', { method: 'POST', body: next });
      const { sent, lost } = this.state.peek();
      this.#set(ok ? { sent: sent + 1 } : { lost: lost + 1 });
    }
    this.#sending = false;
  }

  #set(change: Partial<MidiState>): void {
    this.#state.value = { ...this.state.peek(), ...change };
  }
}
