import type { ServerEvent, State } from '@vela/protocol';

/** How a turn began: the fixed turn, the control shell of deterministic turns, or a voice. */
export type TurnKind = 'mocked' | 'shell' | 'voice';

/** Why an answer is not whole. */
export type Cut = 'cancelled' | 'lost' | 'failed';

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
}

/** Why what was being said was not sent. */
export type Unsent = 'focus' | 'hidden' | 'pointer' | 'microphone' | 'connection';

/** Something that went wrong in the gateway, until it is dismissed or the next turn begins. */
export interface Failure {
  code: string;
  message: string;
}

/** A word about what just happened, for the line in the helm, until the next turn begins. */
export type Note = 'microphone on' | 'too short' | 'nothing recognised' | null;

/** The conversation, as the page shows it. It is a value: reduce() makes the next one. */
export interface Talk {
  /** null before session.ready and after the connection. */
  sessionId: string | null;
  /** Whether a session was there and its connection is not. */
  ended: boolean;
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
  nextId: number;
}

export type Action =
  | { type: 'server'; event: ServerEvent }
  | { type: 'connecting' }
  | { type: 'lost' }
  | { type: 'closed by the user' }
  | { type: 'held'; kind: TurnKind }
  | { type: 'released' }
  | { type: 'triggered' }
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
}

const keptTurns = 200;

export const nothingSaid: Talk = {
  sessionId: null,
  ended: false,
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
  nextId: 1,
};

export function reduce(talk: Talk, action: Action, when: When): Talk {
  switch (action.type) {
    case 'server':
      return server(talk, action.event, when);
    case 'connecting':
      return { ...gone(talk, when), ended: false };
    case 'lost':
      return { ...gone(talk, when), ended: talk.ended || talk.sessionId !== null };
    case 'closed by the user':
      return { ...gone(talk, when), ended: false, newSession: false };
    case 'held':
      return { ...begun(talk), held: action.kind, since: when.clock };
    case 'released':
      return { ...talk, held: null, inFlight: talk.held ?? 'voice', released: when.steady, since: when.clock };
    case 'triggered':
      return { ...begun(talk), inFlight: 'mocked', since: when.clock };
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

/** A turn begins: what the last one left in the helm goes. */
function begun(talk: Talk): Talk {
  return { ...talk, partial: '', unsent: null, note: null, failure: null, newSession: false, open: null, released: null };
}

/** The session is over: nothing is active, and everything that was shown stays. */
function gone(talk: Talk, when: When): Talk {
  const kept = patch(talk, (turn) => ({ ...turn, cut: turn.cut ?? 'lost' }));
  return {
    ...kept,
    sessionId: null,
    phase: 'idle',
    held: null,
    inFlight: null,
    partial: '',
    failure: null,
    open: null,
    since: when.clock,
  };
}

function server(talk: Talk, event: ServerEvent, when: When): Talk {
  switch (event.type) {
    case 'session.ready':
      return {
        ...talk,
        sessionId: event.payload.sessionId,
        newSession: talk.newSession || (talk.sessionId === null && talk.turns.length > 0),
        ended: false,
      };
    case 'session.state':
      return phase(talk, event.payload.value, when);
    case 'transcript.partial':
      // A straggler of a turn that was discarded belongs to nothing.
      if (!talk.held && !talk.inFlight) return talk;
      return { ...talk, partial: event.payload.text, settled: sharedWords(talk.partial, event.payload.text) };
    case 'transcript.final':
      return final(talk, event.payload.text, when);
    case 'response.text.delta':
      return delta(talk, event.payload.text, when);
    case 'response.completed':
      return { ...patch(talk, (turn) => ({ ...turn, done: true, cut: null })), open: null };
    case 'error':
      return failed(talk, event.payload);
  }
}

function phase(talk: Talk, value: State, when: When): Talk {
  const since = value === talk.phase ? talk.since : when.clock;
  if (value !== 'idle') return { ...talk, phase: value, since: talk.held ? talk.since : since };
  // The idle of a turn that was just discarded may arrive when the control is held again.
  if (talk.held) return { ...talk, phase: value };
  // An answer that is neither completed nor cancelled was broken off by a failure.
  const settled = patch(talk, (turn) => ({ ...turn, cut: turn.cut ?? (turn.answer ? 'failed' : null) }));
  return { ...settled, phase: value, inFlight: null, partial: '', open: null, since };
}

function final(talk: Talk, text: string, when: When): Talk {
  if (text.trim() === '') return { ...talk, partial: '', note: 'nothing recognised' };
  return { ...opened(talk, text, when), partial: '' };
}

function delta(talk: Talk, text: string, when: When): Talk {
  const begun = talk.open === null ? opened(talk, '', when) : talk;
  return patch(begun, (turn) => ({ ...turn, answer: turn.answer + text, firstWordAt: turn.firstWordAt ?? when.steady }));
}

function opened(talk: Talk, said: string, when: When): Talk {
  const turn: Turn = {
    id: talk.nextId,
    kind: talk.held ?? talk.inFlight ?? 'voice',
    at: when.clock,
    said,
    answer: '',
    done: false,
    cut: null,
    released: talk.released,
    finalAt: said === '' ? null : when.steady,
    firstWordAt: null,
  };
  return { ...talk, turns: [...talk.turns, turn].slice(-keptTurns), open: turn.id, nextId: turn.id + 1 };
}

function failed(talk: Talk, payload: { code: string; message: string }): Talk {
  const failure = { code: payload.code, message: payload.message };
  // What was refused while the gateway was idle will not be followed by another idle: nothing is in flight.
  return talk.phase === 'idle' ? { ...talk, failure, inFlight: null } : { ...talk, failure };
}

/** Changes the open turn, if there is one; the others keep their identity, so that only one is drawn again. */
function patch(talk: Talk, change: (turn: Turn) => Turn): Talk {
  if (talk.open === null) return talk;
  return { ...talk, turns: talk.turns.map((turn) => (turn.id === talk.open ? change(turn) : turn)) };
}

/** How many characters two partials share at their beginning, in whole words. */
export function sharedWords(before: string, after: string): number {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  if (same === after.length || (same === before.length && after[same] === ' ')) return same;
  return after.lastIndexOf(' ', same - 1) + 1;
}
