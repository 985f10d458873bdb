// For tests: the page without a browser.
import type { Chunk } from '../audio/chunker';
import { MicrophoneError, type MicrophoneEvents, type MicrophoneFault } from '../audio/microphone';
import { FakeSocket, FakeStore, FakeTimers } from '../client/fakes';
import type { Agents } from '../client/agents';
import type { Engines, Turns } from '../client/engines';
import type { Player, PlayerEvents } from '../audio/player';
import { App } from './app';

export const engines: Engines = {
  turns: 'agent',
  agent: { name: 'echo', label: 'Echo (built in)', available: true, why: '', better: '' },
  voices: [],
  ears: [{ name: 'pocketsphinx', label: 'PocketSphinx, US English', available: true, why: '', better: 'Set a service' }],
  detectors: [],
  transcriber: { name: 'pocketsphinx', label: 'PocketSphinx, US English', available: true, why: '', better: 'Set a service' },
};

export class FakeMicrophone {
  opened: string[] = [];
  closed = 0;
  fault: MicrophoneFault | null = null;
  events: MicrophoneEvents | null = null;
  /** When set, opening waits until answer() is called. */
  slow = false;
  answer: () => void = () => {};
  /** What is still in the worklet when it is flushed. */
  left: Chunk[] = [];

  open = async (deviceId: string, events: MicrophoneEvents): Promise<{ deviceId: string; flush(): Promise<void>; close(): void }> => {
    this.opened.push(deviceId);
    if (this.slow) await new Promise<void>((done) => (this.answer = done));
    if (this.fault) throw new MicrophoneError(this.fault);
    this.events = events;
    return {
      deviceId,
      flush: async () => {
        await Promise.resolve();
        for (const chunk of this.left.splice(0)) events.onChunk(chunk);
      },
      close: () => {
        this.closed++;
        this.events = null;
      },
    };
  };

  hear(...bytes: number[]): void {
    this.events!.onChunk(chunk(...bytes));
  }
}

/** Plays nothing by itself: a test says what was played. */
export class FakePlayer implements Player {
  events: PlayerEvents | null = null;
  pushed: { at: number; length: number }[] = [];
  cuts = 0;
  opened = 0;
  woken = 0;
  paused = false;
  closed = 0;
  /** What had been rendered at the next cut, in ms. */
  rendered = 0;

  open = (events: PlayerEvents): Player => {
    this.opened++;
    this.events = events;
    return this;
  };

  push(samples: Float32Array, at: number): void {
    this.pushed.push({ at, length: samples.length });
  }

  async cut(): Promise<number> {
    this.cuts++;
    const { rendered } = this;
    this.rendered = 0;
    return rendered;
  }

  async pause(): Promise<number> {
    this.paused = true;
    return this.rendered;
  }

  resume(): void {
    this.paused = false;
  }

  wake(): void {
    this.woken++;
  }

  close(): void {
    this.closed++;
  }

  /** So much of the answer has left the speaker, in ms. */
  play(ms: number): void {
    this.rendered = ms;
    this.events!.onPlayed(ms);
  }
}

export function chunk(...bytes: number[]): Chunk {
  return { pcm: Uint8Array.from(bytes), level: 0.5 };
}

export interface Bench {
  app: App;
  sockets: FakeSocket[];
  socket(): FakeSocket;
  timers: FakeTimers;
  microphone: FakeMicrophone;
  player: FakePlayer;
  addresses: string[];
  /** Where the page is; its hash can be changed. */
  location: { protocol: string; host: string; search: string; hash: string };
  stored: Map<string, string>;
  tab: FakeStore;
  saved: { name: string; text: string }[];
}

export interface BenchOptions {
  turns?: Turns;
  search?: string;
  engines?: Engines | null;
  agents?: Agents | null | Promise<Agents>;
  greet?: boolean;
  /** What an earlier visit left in the browser. */
  stored?: Map<string, string>;
  hash?: string;
  tab?: FakeStore;
  /** How much later than another page this one is loaded, in ms. */
  later?: number;
  /** What the gateway makes of who asks. */
  admits?(token: string | null): boolean;
}

/** An app that has started and, unless told otherwise, was greeted by the gateway. */
export async function bench(options: BenchOptions = {}): Promise<Bench> {
  const { turns = 'deterministic', search = '', engines: has = engines, agents = null, greet = true, hash = '', later = 0, tab = new FakeStore(), stored = new Map<string, string>(), admits = () => true } = options;
  const sockets: FakeSocket[] = [];
  const timers = new FakeTimers();
  timers.advance(later);
  const microphone = new FakeMicrophone();
  const player = new FakePlayer();
  const addresses: string[] = [];
  const saved: { name: string; text: string }[] = [];
  const location = { protocol: 'http:', host: 'gateway', search, hash };
  const app = new App({
    location,
    setAddress: (a) => addresses.push(a),
    tabStorage: tab,
    save: (name, text) => saved.push({ name, text }),
    storage: { getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => void stored.set(k, v) },
    timers,
    steady: () => timers.now(),
    random: () => 0.5,
    vibrate: () => {},
    fetchEngines: async (token) => (admits(token) ? has && { ...has, turns } : 'sign in'),
    fetchAgents: async () => agents,
    openMicrophone: microphone.open,
    inputDevices: async () => [],
    openPlayer: player.open,
    socket: (url, protocols) => {
      sockets.push(new FakeSocket(url, protocols));
      return sockets.at(-1)!;
    },
  });
  await app.start();
  if (greet) sockets.at(-1)!.greet();
  return { app, sockets, socket: () => sockets.at(-1)!, timers, microphone, player, addresses, location, stored, tab, saved };
}

/** Lets everything that was promised happen. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

/** Speaks and is heard: the microphone is open and the control is held. */
export async function openMicrophone(b: Bench): Promise<void> {
  b.app.press();
  await settle();
  b.app.release();
  await settle();
}
