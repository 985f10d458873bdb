import type { SessionStartPayloadV2, VAD } from '@vela/protocol';
import { soundRate } from '../audio/playback';
import type { Session } from '../client/client';

/** How answers are to sound when they come. */
export const soundFormat = { encoding: 'pcm16', rate: soundRate, framing: 'json' } as const;

/** What is wanted of the session at present. */
export interface Wanted {
  sound(): boolean;
  /** Whether the gateway is to hear where speech begins and ends. */
  detection(): boolean;
  /** How, where it is to be other than the gateway has it. */
  vad(): VAD;
  /** Whether there is nothing in the way of asking. */
  free(): boolean;
  /** The sources whose agents it is to show, by their ids. */
  follow(): readonly string[];
  /** The gateway will not listen by itself. */
  notDetecting(): void;
}

/** Asks the session for what it began without, or has and is not to have any more: one thing at a time, and as soon as no turn is in the way. */
export class Terms {
  #session: Session;
  #wanted: Wanted;
  #soundAsked = false; // whether this session was asked for the sound that it began without
  #followed = ''; // the sources that this session was asked to follow, a line each
  #vad: string | null = null; // how this session was asked to hear that; null: not yet
  #asking: { id: string; settings: SessionStartPayloadV2 } | null = null; // what the session is asked for, until it answers

  constructor(session: Session, wanted: Wanted) {
    this.#session = session;
    this.#wanted = wanted;
  }

  agree(): void {
    const { terms } = this.#session;
    if (!terms || this.#asking !== null || !this.#wanted.free()) return;
    if (!terms.audio?.output && !this.#soundAsked && this.#wanted.sound()) {
      this.#soundAsked = true;
      this.#ask({ audio: { output: soundFormat } });
      return;
    }
    const detects = this.#wanted.detection();
    const turnDetection = detects ? 'vad' : 'none';
    const vad = this.#wanted.vad();
    const asked = JSON.stringify(vad);
    // A session that was taken up again may have it from before.
    this.#vad ??= Object.entries(vad).every(([name, value]) => terms.vad?.[name as keyof VAD] === value) ? asked : null;
    if (turnDetection !== terms.turnDetection || (detects && this.#vad !== asked)) {
      if (detects) this.#vad = asked;
      this.#ask({ turnDetection, ...(detects && asked !== '{}' && { vad }) });
      return;
    }
    const follow = this.#wanted.follow();
    if (!terms.features?.includes('signals') || follow.join('\n') === this.#followed) return; // what others asked for stays
    this.#followed = follow.join('\n');
    this.#ask({ follow: [...follow] });
  }

  #ask(settings: SessionStartPayloadV2): void {
    const id = this.#session.send({ type: 'session.start', payload: settings });
    if (id !== null) this.#asking = { id, settings };
  }

  /** The gateway refuses what it was asked for. A turn that came in between is a delay, and no more: it says whether it was that. */
  refusedAsYet({ code, ref }: { code: string; ref?: string }): boolean {
    if (!this.#asking || ref !== this.#asking.id) return false;
    const { settings } = this.#asking;
    this.#asking = null;
    const later = code === 'turn_in_flight' || code === 'mocked_turn_in_flight';
    if (later) {
      this.#soundAsked &&= !settings.audio;
      if (settings.follow) this.#followed = '\n'; // which is none
      this.#vad = null;
    } else if (settings.turnDetection === 'vad') this.#wanted.notDetecting();
    return later;
  }

  /** What it was asked for has been answered, or is not going to be. */
  settle(): void {
    this.#asking = null;
  }

  /** Another session begins, which was asked for nothing yet. */
  renew(): void {
    this.#soundAsked = false;
    this.#followed = '';
    this.#vad = null;
  }
}
