import type { Usage } from '@vela/protocol';
import type { ConnectionStatus } from '../client/connection';
import type { Agent, Agents } from '../client/agents';
import type { Engine, Engines, Turns } from '../client/engines';
import type { MicrophoneFault } from '../audio/microphone';
import type { HandsFreeState } from './handsfree';
import { nothingSaid, type Talk } from './talk';

/** What the microphone is doing. It plays no part in deterministic turns. */
export type MicrophoneState = 'closed' | 'opening' | 'open' | MicrophoneFault;

/** All that the page shows comes from this. */
export interface Model {
  connection: ConnectionStatus;
  talk: Talk;
  turns: Turns;
  /** null when the gateway did not say. */
  engines: Engines | null;
  /** Those that a session can have; null when the gateway did not say. */
  agents: Agents | null;
  microphone: MicrophoneState;
  handsFree: HandsFreeState;
  /** Whether the browser lets no sound out before somebody presses something. */
  blocked: boolean;
  tapInsteadOfHold: boolean;
  /** Whether the gateway wants to know who comes, and what became of what it was told; null when it does not ask. */
  signIn: SignIn | null;
}

/** Before anything is known. */
export const nothing: Model = {
  connection: { state: 'not connected', cause: null, retryAt: null },
  talk: nothingSaid,
  turns: 'deterministic',
  engines: null,
  agents: null,
  microphone: 'closed',
  handsFree: 'off',
  blocked: false,
  tapInsteadOfHold: false,
  signIn: null,
};

/** Asked for the first time, or again because the token was not taken, or because its time is over. */
export type SignIn = 'needed' | 'refused' | 'expired';

export type Fault = MicrophoneFault;

export function faultOf(model: Model): Fault | null {
  const { microphone, turns } = model;
  if (turns === 'deterministic' || microphone === 'closed' || microphone === 'opening' || microphone === 'open') return null;
  return microphone;
}

export function connectionWord(status: ConnectionStatus): string {
  if (status.retryAt !== null) return 'Reconnecting';
  if (status.word) return status.word;
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

export type SessionState = keyof typeof phaseWords | 'none' | 'kept' | 'ended';

export function sessionState(talk: Talk): SessionState {
  if (talk.kept) return 'kept';
  if (talk.sessionId !== null) return talk.phase;
  return talk.ended ? 'ended' : 'none';
}

export function sessionWord(talk: Talk): string {
  const others = { none: 'No session', kept: 'Kept', ended: 'Ended' };
  return { ...phaseWords, ...others }[sessionState(talk)];
}

/** "Echo, the built-in agent" and "Echo (built in)" are called Echo where they speak; the rest is for the settings. */
export function nameOf(label: string): { name: string; detail: string } {
  const [, name, detail] = /^(.+?)(?:, | \((?=.*\)$))(.+)$/.exec(label) ?? [];
  if (!name || !detail) return { name: label, detail: '' };
  return { name, detail: label[name.length] === ',' ? detail : detail.slice(0, -1) };
}

/** What an agent is called; without a name, the one of the session. */
export function agentName(model: Model, name = ''): string {
  const wanted = name || model.talk.agent;
  const engine = model.engines?.agent;
  const label = agentOf(model, wanted)?.label ?? (engine && (wanted === '' || engine.name === wanted) ? engine.label : wanted);
  return label ? nameOf(label).name : 'The agent';
}

/** What the gateway says of an agent; without a name, of the one that answers. */
export function agentOf({ agents, talk }: Model, name = ''): Agent | null {
  if (!agents) return null;
  const wanted = name || talk.agent || agents.default;
  return agents.agents.find((a) => a.name === wanted) ?? null;
}

/** Which pennant an agent has: its own, or that of whose protocol it speaks. */
export function identityOf(model: Model, name = ''): string {
  const wanted = name || model.talk.agent || model.engines?.agent?.name || '';
  const kinds: Record<string, string> = { anthropic: 'claude', openclaw: 'openclaw' };
  return kinds[agentOf(model, wanted)?.kind ?? ''] ?? wanted;
}

export function tokenWords({ promptTokens, completionTokens }: Usage): string {
  return `${promptTokens.toLocaleString('en')} tokens in, ${completionTokens.toLocaleString('en')} out`;
}

/** The one line about the recogniser, and how to get a better one. */
export function recogniserLine(model: Model): string | null {
  const transcriber = model.engines?.transcriber;
  return transcriber ? engineLine('Recognised by', transcriber) : null;
}

/** The same about the voice that speaks; null where there is none. */
export function voiceLine(model: Model): string | null {
  const voice = voiceAtWork(model);
  return voice && engineLine('Spoken by', voice);
}

export function voicesThere({ engines }: Model): readonly Engine[] {
  return engines?.voices.filter((v) => v.available) ?? [];
}

/** The voice of the session; before there is one, that which a session gets. */
export function voiceAtWork(model: Model): Engine | null {
  return voicesThere(model).find((v) => v.name === model.talk.voice) ?? atWork(model.engines?.voices);
}

/** The same about what tells speech from silence; null where nobody said. */
export function detectorLine({ engines }: Model): string | null {
  const detector = atWork(engines?.detectors);
  return detector && engineLine('Speech is noticed by', detector);
}

function atWork(engines: readonly Engine[] = []): Engine | null {
  return engines.find((e) => e.available) ?? engines[0] ?? null;
}

function engineLine(does: string, { label, available, why, better }: Engine): string {
  const first = available ? `${does} ${label}.` : `${label} is not available${why ? `: ${why}` : ''}.`;
  return better ? `${full(first)} ${full(better)}` : full(first);
}

/** Ends a sentence that came without its full stop, and never with two. */
export function full(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence.replace(/\.+$/, '.') : `${sentence}.`;
}
