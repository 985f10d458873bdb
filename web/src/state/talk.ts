import type { ServerEvent, ServerEventV2, State, Usage } from '@vela/protocol';
import type { Artifact } from './artifacts';
import type { Status } from './status';
import type { Turn, TurnKind } from './turn';

/** Why what was being said was not sent. */
export type Unsent = 'focus' | 'hidden' | 'pointer' | 'microphone' | 'connection' | 'paused' | 'busy' | 'refused';

/** Something that went wrong in the gateway, until it is dismissed or the next turn begins. */
export interface Failure {
  code: string;
  message: string;
}

/** A word about what just happened, for the line in the helm, until the next turn begins. */
export type Note = 'microphone on' | 'microphone gone' | 'too short' | 'nothing recognised' | null;

/** The conversation, as the page shows it. It is a value: reduce(), in reduce.ts, makes the next one. */
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

/** A turn begins: what the last one left in the helm goes. An answer that still runs is not the open turn any more; its end finds it. */
export function begun(talk: Talk): Talk {
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
