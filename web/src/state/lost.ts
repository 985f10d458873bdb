import type { Talk, When } from './talk';
import { over, patch } from './turn';

/** The session is over: nothing is active, and everything that was shown stays. */
export function gone(talk: Talk, when: When): Talk {
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
export function caughtUp(talk: Talk, when: When): Talk {
  if (talk.typed !== null) {
    const quiet = talk.phase === 'idle' ? null : talk.inFlight;
    return { ...talk, typed: null, unsent: unsentText(talk), inFlight: quiet, since: when.clock };
  }
  if (talk.inFlight === null) return talk;
  if (talk.phase === 'listening') return { ...talk, unsure: true };
  return talk.phase === 'idle' ? notSent(talk, when) : talk;
}

/** The turn that the user ended never reached the gateway whole. */
export function notSent(talk: Talk, when: When): Talk {
  const unsent = talk.inFlight === 'voice' ? { text: talk.partial, why: 'connection' as const } : talk.unsent;
  return { ...talk, inFlight: null, partial: '', unsent, unsure: false, since: when.clock };
}
