import type { HistoryItem, ServerEvent, State, TurnMetricsPayload, Usage } from '@vela/protocol';
import type { ArtifactPayload, ServerEventV2 } from '@vela/protocol';
import { asked, decided, settled, withdrawn, type Approval } from './approvals';
import { keptArtifacts, readBody, titleOf, type Artifact } from './artifacts';
import { playedAtLast, playedTo, settledAt, sounded, unheard, type Sound } from './heard';
import { statusOf, type Status } from './status';
import { abandoned, called, returned, type Step } from './steps';

/** How a turn began: the fixed turn, the control shell of deterministic turns, a voice, or the keyboard. */
export type TurnKind = 'mocked' | 'shell' | 'voice' | 'text';

/** Why an answer is not whole. */
export type Cut = 'cancelled' | 'interrupted' | 'lost' | 'failed' | 'stopped';

export interface Turn {
  id: number;
  kind: TurnKind;
  /** When the user's words were final, or the answer began where there were none; ms of the clock. */
  at: number;
  said: string;
  answer: string;
  done: boolean;
  cut: Cut | null;
  /** Of the stages of the turn, in ms of one steady clock; null for what did not happen. */
  released: number | null;
  finalAt: number | null;
  firstWordAt: number | null;
  firstSoundAt: number | null;
  /** What of the answer was heard; null where all that was shown counts as heard. */
  sound: Sound | null;
  /** The gateway's own names of the turn and its answer, and its measurements once it is over. */
  turnId: string | null;
  responseId: string | null;
  metrics: TurnMetricsPayload | null;
  /** Who answers, by name; '' where nobody said. */
  agent: string;
  thought: string;
  /** Whether the thought goes on. */
  thinking: boolean;
  steps: readonly Step[];
  approvals: readonly Approval[];
  /** What the answer took of a model, where the agent says. */
  usage: Usage | null;
  /** Said before this page was there: read from the history, not heard by it. */
  past: boolean;
}

/** Why what was being said was not sent. */
export type Unsent = 'focus' | 'hidden' | 'pointer' | 'microphone' | 'connection' | 'paused' | 'busy' | 'refused';

/** Something that went wrong in the gateway, until it is dismissed or the next turn begins. */
export interface Failure {
  code: string;
  message: string;
}

/** A word about what just happened, for the line in the helm, until the next turn begins. */
export type Note = 'microphone on' | 'microphone gone' | 'too short' | 'nothing recognised' | null;

/** The conversation, as the page shows it. It is a value: reduce() makes the next one. */
export interface Talk {
  /** null before session.ready and after the connection. */
  sessionId: string | null;
  /** Whether a session was there and its connection is not. */
  ended: boolean;
  /** Whether the session goes on without its connection, and may be resumed. */
  kept: boolean;
  /** Whether speech and typing end an answer; never in version 1. */
  interrupt: boolean;
  /** Whether the gateway can hear where speech begins and ends, and whether it does. */
  canDetect: boolean;
  detects: boolean;
  /** The gateway's phase. */
  phase: State;
  /** The kind of the turn that the user is speaking, null while the control is not held. */
  held: TurnKind | null;
  /** From the commit or the trigger on, until the gateway says idle. */
  inFlight: TurnKind | null;
  /** When the present hold or phase began, in ms of the clock. */
  since: number;
  partial: string;
  /** How much of the partial was there before its last change. */
  settled: number;
  unsent: { text: string; why: Unsent } | null;
  note: Note;
  failure: Failure | null;
  /** Whether this session follows one that was lost. */
  newSession: boolean;
  turns: readonly Turn[];
  /** The turn that takes what comes, as long as one is open. */
  open: number | null;
  /** When the control was let go, for the stages of the turn that follows. */
  released: number | null;
  /** What was typed and sent, until the gateway says it back; the id is that of its message. */
  typed: { text: string; id: string } | null;
  /** Whether it is not known if the end of the user's turn reached the gateway before the connection was lost. */
  unsure: boolean;
  /** A new conversation was asked for. */
  clearing: boolean;
  /** Who answers in this session, by name; '' in version 1, and before session.ready. */
  agent: string;
  /** Who speaks the answers, by name; '' where nobody does, and before session.ready. */
  voice: string;
  /** What the agent says that it does, until that is over. */
  status: Status | null;
  /** The last ones, oldest first. */
  artifacts: readonly Artifact[];
  /** What the conversation took of a model, as far as this page heard it; null where no agent says. */
  spent: Usage | null;
  nextId: number;
}

export type Action =
  | { type: 'server'; event: ServerEvent | ServerEventV2 }
  | { type: 'connecting' }
  | { type: 'kept' }
  | { type: 'caught up' }
  | { type: 'lost' }
  | { type: 'closed by the user' }
  | { type: 'held'; kind: TurnKind }
  | { type: 'released' }
  | { type: 'triggered' }
  | { type: 'submitted'; text: string; id: string }
  | { type: 'clearing' }
  | { type: 'answered'; id: string; allow: boolean }
  | { type: 'too late'; id: string }
  | { type: 'played'; responseId: string; playedMs: number; last: boolean }
  | { type: 'status over' }
  | { type: 'discarded' }
  | { type: 'too short' }
  | { type: 'hold lost'; why: Unsent }
  | { type: 'cancelled' }
  | { type: 'note'; note: Note }
  | { type: 'dismissed'; what: 'failure' | 'unsent' | 'new session' };

/** When an action happened: by the clock on the wall, and by the one that never jumps. */
export interface When {
  clock: number;
  steady: number;
  /** Whether it is told now and happened before, so that the gateway's clock is to be asked. */
  again?: boolean;
  /** Whether answers are heard on this page. */
  aloud?: boolean;
}

const keptTurns = 200;

/** More than anybody reads of what is no part of the answer, in characters and in uses of tools. */
const longestThought = 200_000;
const mostSteps = 500;

export const nothingSaid: Talk = {
  sessionId: null,
  ended: false,
  kept: false,
  interrupt: false,
  canDetect: false,
  detects: false,
  phase: 'idle',
  held: null,
  inFlight: null,
  since: 0,
  partial: '',
  settled: 0,
  unsent: null,
  note: null,
  failure: null,
  newSession: false,
  turns: [],
  open: null,
  released: null,
  typed: null,
  unsure: false,
  clearing: false,
  agent: '',
  voice: '',
  status: null,
  artifacts: [],
  spent: null,
  nextId: 1,
};

export function reduce(talk: Talk, action: Action, when: When): Talk {
  switch (action.type) {
    case 'server':
      return server(talk, action.event, when);
    case 'connecting':
      return { ...gone(talk, when), ended: false };
    case 'kept':
      return { ...patch(talk, (turn) => ({ ...turn, released: null })), kept: true, held: null, failure: null };
    case 'caught up':
      return caughtUp(talk, when);
    case 'lost':
      return { ...gone(talk, when), ended: talk.ended || talk.sessionId !== null };
    case 'closed by the user':
      return { ...gone(talk, when), ended: false, newSession: false };
    case 'held':
      return { ...begun(talk), held: action.kind, inFlight: null, since: when.clock };
    case 'released':
      return { ...talk, held: null, inFlight: talk.held ?? 'voice', released: when.steady, since: when.clock };
    case 'triggered':
      return { ...begun(talk), inFlight: 'mocked', since: when.clock };
    case 'submitted':
      return { ...begun(talk), inFlight: 'text', typed: { text: action.text, id: action.id }, since: when.clock };
    case 'clearing':
      return { ...talk, clearing: true, failure: null, newSession: false };
    case 'answered':
      return decide(talk, action.id, action.allow ? 'allowed' : 'denied');
    case 'too late':
      return decide(talk, action.id, 'too late');
    case 'played':
      return played(talk, action);
    case 'status over':
      return { ...talk, status: null };
    case 'discarded':
      return { ...talk, held: null, partial: '', since: when.clock };
    case 'too short':
      return { ...talk, held: null, partial: '', note: 'too short', since: when.clock };
    case 'hold lost':
      return { ...talk, held: null, partial: '', unsent: { text: talk.partial, why: action.why }, since: when.clock };
    case 'cancelled':
      return { ...patch(talk, (turn) => ({ ...turn, cut: 'cancelled' })), partial: '' };
    case 'note':
      return { ...talk, note: action.note };
    case 'dismissed':
      if (action.what === 'failure') return { ...talk, failure: null };
      if (action.what === 'unsent') return { ...talk, unsent: null };
      return { ...talk, newSession: false };
  }
}

/** A turn begins: what the last one left in the helm goes. An answer that still runs is not the open turn any more; its end finds it. */
function begun(talk: Talk): Talk {
  return {
    ...talk,
    partial: '',
    unsent: null,
    note: null,
    failure: null,
    newSession: false,
    open: running(talk) ? talk.open : null,
    released: null,
    unsure: false,
  };
}

/** Whether an answer runs that what begins now will interrupt. */
export function running(talk: Talk): boolean {
  return talk.interrupt && (talk.phase === 'thinking' || talk.phase === 'speaking' || waits(talk));
}

/** Whether an answer waits to see whether what is being heard are words. */
export function waits({ detects, phase, open }: Talk): boolean {
  return detects && phase === 'listening' && open !== null;
}

/** Whether what is heard is heard by itself, with nothing held. */
function byItself({ detects, held, inFlight }: Talk): boolean {
  return detects && held === null && inFlight === null;
}

/** The session is over: nothing is active, and everything that was shown stays. */
function gone(talk: Talk, when: When): Talk {
  const kept = patch(talk, (turn) => over({ ...turn, cut: turn.cut ?? 'lost' }));
  return {
    ...kept,
    unsent: unsentText(talk),
    typed: null,
    sessionId: null,
    kept: false,
    phase: 'idle',
    held: null,
    inFlight: null,
    partial: '',
    failure: null,
    open: null,
    unsure: false,
    clearing: false,
    status: null,
    since: when.clock,
  };
}

/** What was typed and never came back is not lost. */
function unsentText({ typed, unsent }: Talk): Talk['unsent'] {
  return typed ? { text: typed.text, why: 'connection' } : unsent;
}

/** All that was missed is here: what was under way when the connection was lost has arrived, or never will. */
function caughtUp(talk: Talk, when: When): Talk {
  if (talk.typed !== null) {
    const quiet = talk.phase === 'idle' ? null : talk.inFlight;
    return { ...talk, typed: null, unsent: unsentText(talk), inFlight: quiet, since: when.clock };
  }
  if (talk.inFlight === null) return talk;
  if (talk.phase === 'listening') return { ...talk, unsure: true };
  return talk.phase === 'idle' ? notSent(talk, when) : talk;
}

/** The turn that the user ended never reached the gateway whole. */
function notSent(talk: Talk, when: When): Talk {
  const unsent = talk.inFlight === 'voice' ? { text: talk.partial, why: 'connection' as const } : talk.unsent;
  return { ...talk, inFlight: null, partial: '', unsent, unsure: false, since: when.clock };
}

function server(talk: Talk, event: ServerEvent | ServerEventV2, when: When): Talk {
  switch (event.type) {
    case 'session.ready':
      return ready(talk, event.payload, when);
    case 'session.state':
      return phase(talk, event.payload.value, when);
    case 'transcript.partial':
      return partial(talk, event.payload.text);
    case 'transcript.final':
      return final(talk, event.payload.text, when, 'ts' in event ? event.ts : undefined);
    case 'response.text.delta':
      return delta(talk.status?.action === 'thinking' ? { ...talk, status: null } : talk, event.payload.text, when);
    case 'response.completed':
      return completed(talk, event.payload);
    case 'error':
      return failed(talk, event.payload);
    case 'response.created':
      return patch(answering({ ...talk, failure: null }, when, event.ts), (turn) => ({
        ...turn,
        turnId: event.payload.turnId,
        responseId: event.payload.responseId,
        agent: talk.agent,
        sound: when.aloud && turn.kind !== 'mocked' ? unheard : null,
      }));
    case 'response.audio.delta':
      return patchAnswer(talk, event.payload.responseId, (turn) => ({
        ...turn,
        firstSoundAt: turn.firstSoundAt ?? when.steady,
        sound: turn.sound && sounded(turn.sound, event.payload),
      }));
    case 'response.cancelled':
      return {
        ...patch(talk, (turn) =>
          over({
            ...turn,
            cut: cutBy[event.payload.reason] ?? 'failed',
            sound: turn.sound && settledAt(turn.sound, event.payload.heardText, event.payload.playedMs ?? 0),
          }),
        ),
        open: null,
        status: null,
      };
    case 'thinking.delta':
      return patch(talk, (turn) => ({ ...turn, thought: (turn.thought + event.payload.text).slice(0, longestThought), thinking: true }));
    case 'tool.call':
      return patch(talk, (turn) => ({ ...turn, thinking: false, steps: [...turn.steps, called(event.payload, event.ts ?? when.clock)].slice(-mostSteps) }));
    case 'tool.result':
      return patch(talk, (turn) => ({
        ...turn,
        steps: turn.steps.map((s) => returned(s, event.payload, event.ts ?? when.clock)),
        approvals: settled(turn.approvals, event.payload.callId),
      }));
    case 'approval.request':
      return patch(answering(talk, when, event.ts), (turn) => ({
        ...turn,
        thinking: false,
        approvals: [
          ...turn.approvals.filter((a) => a.id !== event.payload.approvalId),
          asked(event.payload, when.again ? Math.min(event.ts ?? when.clock, when.clock) : when.clock),
        ],
      }));
    case 'status':
      return { ...talk, status: statusOf(event.payload, when.clock, toolRuns(talk)) };
    case 'artifact':
      return artifact(talk, event.payload, event.ts ?? when.clock);
    case 'turn.metrics':
      return patchWhere(talk, (turn) => turn.turnId === event.payload.turnId && !turn.past, (turn) => ({ ...turn, metrics: event.payload }));
    case 'history':
      return history(talk, event.payload.items);
    default:
      return talk;
  }
}

const cutBy: Record<string, Cut> = { client: 'cancelled', barge_in: 'interrupted', error: 'failed', shutdown: 'stopped' };

/** The turn's answer ends here, whole or not. */
function over(turn: Turn): Turn {
  return { ...turn, thinking: false, steps: turn.steps.map(abandoned), approvals: withdrawn(turn.approvals) };
}

function completed(talk: Talk, { usage, heardText }: { usage?: Usage; heardText?: string }): Talk {
  const { spent } = talk;
  const sum = usage && {
    promptTokens: (spent?.promptTokens ?? 0) + usage.promptTokens,
    completionTokens: (spent?.completionTokens ?? 0) + usage.completionTokens,
  };
  const done = patch(talk, (turn) => over({ ...turn, done: true, cut: null, usage: usage ?? null, sound: soundOf(turn, heardText) }));
  return { ...done, open: null, status: null, spent: sum ?? spent };
}

/** Of an answer that was told to its end. What was not heard of it stays pale. */
function soundOf({ sound, answer }: Turn, heardText = answer): Sound | null {
  return sound && heardText.length < answer.length ? settledAt(sound, heardText, 0) : sound && { ...sound, heard: answer.length };
}

/** Most of what is played is no further word, and changes nothing. */
function played(talk: Talk, { responseId, playedMs, last }: { responseId: string; playedMs: number; last: boolean }): Talk {
  const sound = answerOf(talk, responseId)?.sound;
  const next = sound && (last ? playedAtLast(sound, playedMs) : playedTo(sound, playedMs));
  return !next || next === sound ? talk : patchAnswer(talk, responseId, (turn) => ({ ...turn, sound: next }));
}

/** The names of answers begin anew with each session: the last one of this name is meant. */
function answerOf({ turns }: Talk, responseId: string): Turn | undefined {
  return turns.findLast((turn) => turn.responseId === responseId);
}

function decide(talk: Talk, id: string, outcome: 'allowed' | 'denied' | 'too late'): Talk {
  return patch(talk, (turn) => ({ ...turn, approvals: turn.approvals.map((a) => decided(a, id, outcome)) }));
}

function artifact(talk: Talk, payload: ArtifactPayload, at: number): Talk {
  const body = readBody(payload);
  if (!body) return talk;
  const next: Artifact = { id: talk.nextId, title: titleOf(payload.title, body), at, agent: payload.source ?? talk.agent, body };
  return { ...talk, artifacts: [...talk.artifacts, next].slice(-keptArtifacts), nextId: talk.nextId + 1 };
}

interface Ready {
  sessionId: string;
  recovered?: boolean;
  interrupt?: boolean;
  agent?: string;
  voice?: string;
  turnDetection?: string;
  features?: readonly string[];
}

function ready(talk: Talk, payload: Ready, when: When): Talk {
  const before = talk.kept && !payload.recovered ? gone(talk, when) : talk;
  return {
    ...before,
    sessionId: payload.sessionId,
    interrupt: payload.interrupt === true,
    canDetect: payload.features?.includes('vad') === true,
    detects: payload.turnDetection === 'vad',
    agent: payload.agent ?? '',
    voice: payload.voice ?? '',
    newSession: before.newSession || (before.sessionId === null && before.turns.length > 0),
    ended: false,
    kept: false,
  };
}

/** The conversation as the agent knows it: what was said before this page was there, or nothing, if a new one was asked for. */
function history(talk: Talk, items: readonly HistoryItem[]): Talk {
  if (talk.clearing) return { ...talk, turns: [], artifacts: [], spent: null, open: null, clearing: false, unsent: null, note: null };
  let { nextId } = talk;
  const past: Turn[] = [];
  for (const { role, text, at, heardText } of items) {
    const last = past.at(-1);
    if (role === 'user') past.push({ ...blank, id: nextId++, kind: 'voice', at, said: text, done: true, past: true });
    else if (last && last.answer === '') {
      const cutOff = heardText !== undefined;
      past[past.length - 1] = {
        ...last,
        answer: text,
        cut: cutOff ? 'interrupted' : null,
        sound: cutOff ? { ...unheard, heard: heardText.length, playedMs: null } : null,
      };
    }
  }
  // What this page has heard itself is there in full; the gateway tells it once more, at the end.
  for (const turn of talk.turns.toReversed()) {
    if (past.at(-1) && past.at(-1)!.said === turn.said && turn.id !== talk.open) past.pop();
  }
  return { ...talk, turns: [...past, ...talk.turns].slice(-keptTurns), nextId };
}

function phase(talk: Talk, value: State, when: When): Talk {
  const since = value === talk.phase ? talk.since : when.clock;
  // What is heard by itself is a turn of its own, whatever began the one before.
  const inFlight = value === 'listening' && talk.detects && !talk.held ? null : talk.inFlight;
  if (value !== 'idle') return { ...talk, phase: value, inFlight, since: talk.held ? talk.since : since };
  // The idle of a turn that was just discarded may arrive when the control is held again.
  if (talk.held) return { ...talk, phase: value };
  if (talk.unsure && talk.inFlight !== null) return { ...notSent(talk, when), phase: value };
  // An answer that is neither completed nor cancelled was broken off by a failure.
  const broken = patch(talk, (turn) => over({ ...turn, cut: turn.cut ?? (turn.answer ? 'failed' : null) }));
  return { ...broken, phase: value, inFlight: talk.typed ? 'text' : null, partial: '', open: null, status: null, since };
}

function partial(talk: Talk, text: string): Talk {
  if (!talk.held && !talk.inFlight) {
    // A straggler of a turn that was discarded belongs to nothing.
    if (!talk.detects || talk.phase !== 'listening' || text === '') return talk;
    if (talk.partial === '') talk = begun(talk);
  }
  return { ...talk, partial: text, settled: sharedWords(talk.partial, text) };
}

function final(talk: Talk, text: string, when: When, at?: number): Talk {
  const typed = talk.typed?.text === text;
  const heard = byItself(talk) && !typed;
  // A noise that nobody meant is not worth a word.
  if (text.trim() === '') return { ...talk, partial: '', note: heard ? talk.note : 'nothing recognised', unsure: false };
  const before = typed ? { ...talk, inFlight: 'text' as const } : heard ? { ...begun(talk), open: null } : talk;
  return { ...opened(before, text, when, at), partial: '', unsure: false, typed: typed ? null : talk.typed };
}

function delta(talk: Talk, text: string, when: When): Talk {
  return patch(answering(talk, when), (turn) => ({ ...turn, thinking: false, answer: turn.answer + text, firstWordAt: turn.firstWordAt ?? when.steady }));
}

/** Whether the answer waits for a tool. */
function toolRuns({ turns, open }: Talk): boolean {
  return turns.some((turn) => turn.id === open && turn.steps.some(({ state }) => state === 'running'));
}

const blank = {
  said: '',
  answer: '',
  done: false,
  cut: null,
  released: null,
  finalAt: null,
  firstWordAt: null,
  firstSoundAt: null,
  sound: null,
  turnId: null,
  responseId: null,
  metrics: null,
  agent: '',
  thought: '',
  thinking: false,
  steps: [],
  approvals: [],
  usage: null,
  past: false,
} satisfies Omit<Turn, 'id' | 'kind' | 'at'>;

/** With a turn that takes what comes, also where nothing was said before the answer. */
function answering(talk: Talk, when: When, at?: number): Talk {
  return talk.open === null ? opened(talk, '', when, at) : talk;
}

function opened(talk: Talk, said: string, when: When, at?: number): Talk {
  const turn: Turn = {
    ...blank,
    id: talk.nextId,
    kind: talk.held ?? talk.inFlight ?? 'voice',
    at: (when.again && at) || when.clock,
    agent: talk.agent,
    said,
    released: talk.released,
    finalAt: said === '' ? null : when.steady,
  };
  return { ...talk, turns: [...talk.turns, turn].slice(-keptTurns), open: turn.id, nextId: turn.id + 1 };
}

function failed(talk: Talk, payload: { code: string; message: string; ref?: string }): Talk {
  const failure = { code: payload.code, message: payload.message };
  if (talk.typed && payload.ref === talk.typed.id) {
    const busy = payload.code === 'turn_in_flight' || payload.code === 'mocked_turn_in_flight';
    const inFlight = talk.phase === 'idle' ? null : talk.inFlight;
    return { ...talk, unsent: { text: talk.typed.text, why: busy ? 'busy' : 'refused' }, typed: null, inFlight, failure: busy ? null : failure };
  }
  // What was refused while the gateway was idle will not be followed by another idle: nothing is in flight.
  return talk.phase === 'idle' ? { ...talk, failure, inFlight: null, clearing: false } : { ...talk, failure, clearing: false };
}

function patchAnswer(talk: Talk, responseId: string, change: (turn: Turn) => Turn): Talk {
  const answer = answerOf(talk, responseId);
  return answer ? patchWhere(talk, (turn) => turn === answer, change) : talk;
}

/** Changes the open turn, if there is one; the others keep their identity, so that only one is drawn again. */
function patch(talk: Talk, change: (turn: Turn) => Turn): Talk {
  return talk.open === null ? talk : patchWhere(talk, (turn) => turn.id === talk.open, change);
}

function patchWhere(talk: Talk, which: (turn: Turn) => boolean, change: (turn: Turn) => Turn): Talk {
  return { ...talk, turns: talk.turns.map((turn) => (which(turn) ? change(turn) : turn)) };
}

/** How many characters two partials share at their beginning, in whole words. */
export function sharedWords(before: string, after: string): number {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  if (same === after.length || (same === before.length && after[same] === ' ')) return same;
  return after.lastIndexOf(' ', same - 1) + 1;
}
