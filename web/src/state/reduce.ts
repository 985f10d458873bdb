import { decided } from './approvals';
import { playedAtLast, playedTo } from './heard';
import { caughtUp, gone } from './lost';
import { begun, type Action, type Talk, type When } from './talk';
import { server } from './told';
import { answerOf, patch, patchAnswer } from './turn';

/** The conversation after an action. Nothing else makes one of another, and it reads no clock but `when`. */
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

/** Most of what is played is no further word, and changes nothing. */
function played(talk: Talk, { responseId, playedMs, last }: { responseId: string; playedMs: number; last: boolean }): Talk {
  const sound = answerOf(talk, responseId)?.sound;
  const next = sound && (last ? playedAtLast(sound, playedMs) : playedTo(sound, playedMs));
  return !next || next === sound ? talk : patchAnswer(talk, responseId, (turn) => ({ ...turn, sound: next }));
}

function decide(talk: Talk, id: string, outcome: 'allowed' | 'denied' | 'too late'): Talk {
  return patch(talk, (turn) => ({ ...turn, approvals: turn.approvals.map((a) => decided(a, id, outcome)) }));
}
