import type { Chunk } from '../audio/chunker';
import type { Ear } from './ear';
import type { Unsent } from './talk';
import type { Model } from './view';

/** Whether the page is to listen by itself: not at all, or not now. */
export type HandsFreeState = 'off' | 'on' | 'paused';

/**
 * What becomes of a voice while nobody holds the control: nothing ("off", where it is to be held); nothing yet, as the microphone is not open on this
 * page ("closed") or the session does not listen by itself so far ("coming"); it is heard ("live"); or it is not to be heard for now ("paused").
 */
export type Listening = 'off' | 'closed' | 'coming' | 'live' | 'paused';

export function listening({ handsFree, microphone, turns, talk }: Model): Listening {
  if (handsFree === 'off' || turns !== 'agent' || !talk.canDetect) return 'off';
  if (handsFree === 'paused') return 'paused';
  if (microphone === 'open') return talk.detects ? 'live' : 'coming';
  return microphone === 'opening' ? 'coming' : 'closed';
}

/** Whether a session that has told what it can do cannot do this. */
export function cannotListen({ turns, talk }: Model): boolean {
  return turns === 'agent' && talk.sessionId !== null && !talk.canDetect;
}

export interface HandsFreeOptions {
  ear: Ear;
  deviceId(): string;
  listening(): Listening;
  sendAudio(pcm: Chunk['pcm']): boolean;
  onLevel(level: number): void;
  onState(state: HandsFreeState): void;
  /** What was being said is broken off. */
  onBrokenOff(why: Unsent): void;
}

/**
 * Talking without holding anything: the microphone is open, and the gateway hears where speech begins and ends.
 *
 * The first opening takes a gesture, here as in any browser: set() and tap() come of one. After that it opens again by itself where it was closed for
 * a while, because the page was out of sight or the session was away.
 */
export class HandsFree {
  #o: HandsFreeOptions;
  #state: HandsFreeState;
  #begun = false; // whether the user opened the microphone for it
  #inSight = true;

  constructor(wanted: boolean, options: HandsFreeOptions) {
    this.#state = wanted ? 'on' : 'off';
    this.#o = options;
  }

  get state(): HandsFreeState {
    return this.#state;
  }

  /** The switch. */
  set(on: boolean): void {
    if (on === (this.#state !== 'off')) return;
    this.#move(on ? 'on' : 'off');
  }

  /** A short press of the control: it pauses, or goes on. */
  tap(): void {
    this.#move(this.#o.listening() === 'live' || this.#o.listening() === 'coming' ? 'paused' : 'on');
  }

  #move(state: HandsFreeState): void {
    if (state !== 'on') this.#o.onBrokenOff('paused');
    this.#state = state;
    this.#begun = state === 'on';
    this.#o.onState(state);
    if (state === 'on') void this.#o.ear.open(this.#o.deviceId());
    else this.#o.ear.used();
  }

  /** Takes what the microphone hears, where nobody else does. */
  take(chunk: Chunk): void {
    if (this.#o.listening() !== 'live') return;
    this.#o.onLevel(chunk.level);
    this.#o.sendAudio(chunk.pcm);
  }

  /** The microphone is open, whoever opened it. */
  opened(): void {
    this.#begun ||= this.#state === 'on';
  }

  /** The microphone did not open. */
  failed(): void {
    this.#begun = false;
  }

  /** The microphone went away: only a press brings it back. */
  unplugged(): void {
    this.failed();
    this.#o.onBrokenOff('microphone');
  }

  /** The page was covered, or can be seen again. Nothing is captured out of sight. */
  sight(inSight: boolean): void {
    this.#inSight = inSight;
    if (inSight) this.comeBack();
    else this.#o.onBrokenOff('hidden');
  }

  /** Opens the microphone again where it was closed for a while. */
  comeBack(): void {
    if (this.#begun && this.#state === 'on' && this.#inSight) void this.#o.ear.open(this.#o.deviceId());
  }
}
