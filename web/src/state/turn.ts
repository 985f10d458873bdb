import type { TurnMetricsPayload, Usage } from '@vela/protocol';
import { withdrawn, type Approval } from './approvals';
import { settledAt, type Sound } from './heard';
import { abandoned, type Step } from './steps';
import type { Talk, When } from './talk';

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

export const blank = {
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

export const keptTurns = 200;

export function opened(talk: Talk, said: string, when: When, at?: number): Talk {
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

/** With a turn that takes what comes, also where nothing was said before the answer. */
export function answering(talk: Talk, when: When, at?: number): Talk {
  return talk.open === null ? opened(talk, '', when, at) : talk;
}

/** The turn's answer ends here, whole or not. */
export function over(turn: Turn): Turn {
  return { ...turn, thinking: false, steps: turn.steps.map(abandoned), approvals: withdrawn(turn.approvals) };
}

/** Of an answer that was told to its end. What was not heard of it stays pale. */
export function soundOf({ sound, answer }: Turn, heardText = answer): Sound | null {
  return sound && heardText.length < answer.length ? settledAt(sound, heardText, 0) : sound && { ...sound, heard: answer.length };
}

/** Whether the answer waits for a tool. */
export function toolRuns({ turns, open }: Talk): boolean {
  return turns.some((turn) => turn.id === open && turn.steps.some(({ state }) => state === 'running'));
}

/** Changes the open turn, if there is one; the others keep their identity, so that only one is drawn again. */
export function patch(talk: Talk, change: (turn: Turn) => Turn): Talk {
  return talk.open === null ? talk : patchWhere(talk, (turn) => turn.id === talk.open, change);
}

/** The names of answers begin anew with each session: the last one of this name is meant. */
export function answerOf({ turns }: Talk, responseId: string): Turn | undefined {
  return turns.findLast((turn) => turn.responseId === responseId);
}

export function patchAnswer(talk: Talk, responseId: string, change: (turn: Turn) => Turn): Talk {
  const answer = answerOf(talk, responseId);
  return answer ? patchWhere(talk, (turn) => turn === answer, change) : talk;
}

export function patchWhere(talk: Talk, which: (turn: Turn) => boolean, change: (turn: Turn) => Turn): Talk {
  return { ...talk, turns: talk.turns.map((turn) => (which(turn) ? change(turn) : turn)) };
}
