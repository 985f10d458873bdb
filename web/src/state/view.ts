import type { ConnectionStatus } from '../client/connection';
import type { Engines, Turns } from '../client/engines';
import type { MicrophoneFault } from '../audio/microphone';
import type { Talk } from './talk';

/** What the microphone is doing. It plays no part in deterministic turns. */
export type MicrophoneState = 'closed' | 'opening' | 'open' | MicrophoneFault;

/** All that the page shows comes from this. */
export interface Model {
  connection: ConnectionStatus;
  talk: Talk;
  turns: Turns;
  /** null when the gateway did not say. */
  engines: Engines | null;
  microphone: MicrophoneState;
  tapInsteadOfHold: boolean;
}

export type Fault = MicrophoneFault;

export function faultOf(model: Model): Fault | null {
  const { microphone, turns } = model;
  if (turns === 'deterministic' || microphone === 'closed' || microphone === 'opening' || microphone === 'open') return null;
  return microphone;
}

export function connectionWord(status: ConnectionStatus): string {
  if (status.retryAt !== null) return 'Reconnecting';
  const words = {
    'not connected': 'Not connected',
    connecting: 'Connecting',
    connected: 'Connected',
    disconnected: 'Disconnected',
    error: 'Error',
  };
  return words[status.state];
}

export const phaseWords = { idle: 'Idle', listening: 'Listening', thinking: 'Thinking', speaking: 'Speaking' } as const;

export type SessionState = keyof typeof phaseWords | 'none' | 'ended';

export function sessionState(talk: Talk): SessionState {
  if (talk.sessionId !== null) return talk.phase;
  return talk.ended ? 'ended' : 'none';
}

export function sessionWord(talk: Talk): string {
  const state = sessionState(talk);
  return state === 'none' ? 'No session' : state === 'ended' ? 'Ended' : phaseWords[state];
}

/** "Echo, the built-in agent" and "Echo (built in)" are called Echo where they speak; the rest is for the settings. */
export function nameOf(label: string): { name: string; detail: string } {
  const [, name, detail] = /^(.+?)(?:, | \((?=.*\)$))(.+)$/.exec(label) ?? [];
  if (!name || !detail) return { name: label, detail: '' };
  return { name, detail: label[name.length] === ',' ? detail : detail.slice(0, -1) };
}

export function agentName(model: Model): string {
  const label = model.engines?.agent?.label;
  return label ? nameOf(label).name : 'The agent';
}

/** The one line about the recogniser, and how to get a better one. */
export function recogniserLine(model: Model): string | null {
  const transcriber = model.engines?.transcriber;
  if (!transcriber) return null;
  const { label, available, why, better } = transcriber;
  const first = available ? `Recognised by ${label}.` : `${label} is not available${why ? `: ${why}` : ''}.`;
  return better ? `${full(first)} ${full(better)}` : full(first);
}

/** Ends a sentence that came without its full stop, and never with two. */
export function full(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence.replace(/\.+$/, '.') : `${sentence}.`;
}
