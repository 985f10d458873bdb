import type { HistoryItem, ServerEvent, State, Usage } from '@vela/protocol';
import type { ArtifactPayload, ServerEventV2 } from '@vela/protocol';
import { asked, settled } from './approvals';
import { keptArtifacts, readBody, titleOf, type Artifact } from './artifacts';
import { settledAt, sounded, unheard } from './heard';
import { gone, notSent } from './lost';
import { statusOf } from './status';
import { called, returned } from './steps';
import { begun, type Talk, type When } from './talk';
import { answering, blank, keptTurns, opened, over, patch, patchAnswer, patchWhere, soundOf, toolRuns, type Cut, type Turn } from './turn';

/** More than anybody reads of what is no part of the answer, in characters and in uses of tools. */
const longestThought = 200_000;
const mostSteps = 500;

/** The conversation after an event of the gateway's, of either version. What it has no use for changes nothing. */
export function server(talk: Talk, event: ServerEvent | ServerEventV2, when: When): Talk {
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

/** How many characters two partials share at their beginning, in whole words. */
function sharedWords(before: string, after: string): number {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  if (same === after.length || (same === before.length && after[same] === ' ')) return same;
  return after.lastIndexOf(' ', same - 1) + 1;
}

function final(talk: Talk, text: string, when: When, at?: number): Talk {
  const typed = talk.typed?.text === text;
  const heard = byItself(talk) && !typed;
  // A noise that nobody meant is not worth a word.
  if (text.trim() === '') return { ...talk, partial: '', note: heard ? talk.note : 'nothing recognised', unsure: false };
  const before = typed ? { ...talk, inFlight: 'text' as const } : heard ? { ...begun(talk), open: null } : talk;
  return { ...opened(before, text, when, at), partial: '', unsure: false, typed: typed ? null : talk.typed };
}

/** Whether what is heard is heard by itself, with nothing held. */
function byItself({ detects, held, inFlight }: Talk): boolean {
  return detects && held === null && inFlight === null;
}

function delta(talk: Talk, text: string, when: When): Talk {
  return patch(answering(talk, when), (turn) => ({ ...turn, thinking: false, answer: turn.answer + text, firstWordAt: turn.firstWordAt ?? when.steady }));
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

function artifact(talk: Talk, payload: ArtifactPayload, at: number): Talk {
  const body = readBody(payload);
  if (!body) return talk;
  const next: Artifact = { id: talk.nextId, title: titleOf(payload.title, body), at, agent: payload.source ?? talk.agent, body };
  return { ...talk, artifacts: [...talk.artifacts, next].slice(-keptArtifacts), nextId: talk.nextId + 1 };
}
