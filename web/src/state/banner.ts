import type { ErrorCode } from '@vela/protocol';
import { saidOnly } from '../client/connection';
import { oneLine } from './plain';
import { agentName, faultOf, full, type Fault, type Model } from './view';

/** What the button of a banner does. */
export type BannerAction = 'connect' | 'try now' | 'microphone' | 'settings' | 'ask again' | 'dismiss failure' | 'dismiss new session';

export interface Banner {
  strong: string;
  text: string;
  /** What changes every second, which is seen and not read aloud. */
  countdown?: string;
  /** Whether it interrupts a screen reader. */
  alert: boolean;
  /** Whether it goes away by itself, or needs somebody. */
  tone: 'passing' | 'bad';
  action: { does: BannerAction; word: string } | null;
}

const dismissFailure = { does: 'dismiss failure', word: 'Dismiss' } as const;

/**
 * The one banner, if something needs a person: first what keeps everything else from working. `now` is the clock, for the seconds until the
 * next try; `idleMs` is how long nothing was said when the gateway closed.
 */
export function banner(model: Model, now: number, idleMs: number): Banner | null {
  return (
    connectionBanner(model, now, idleMs) ??
    microphoneBanner(faultOf(model)) ??
    failureBanner(model) ??
    (model.talk.newSession && model.talk.sessionId !== null
      ? {
          strong: 'Connected again,',
          text: 'to a new session. What was said before is not known to it.',
          alert: false,
          tone: 'passing',
          action: { does: 'dismiss new session', word: 'Dismiss' },
        }
      : null)
  );
}

function connectionBanner({ connection, signIn }: Model, now: number, idleMs: number): Banner | null {
  const { state, cause, retryAt } = connection;
  if (signIn) return null; // the view that asks for the token says it all
  if (cause?.kind === 'said' && retryAt === null) {
    const { strong, text, again } = cause;
    return { strong, text, alert: true, tone: 'bad', action: again === '' ? null : { does: 'connect', word: again } };
  }
  if (retryAt !== null) {
    const seconds = Math.max(1, Math.ceil((retryAt - now) / 1000));
    return {
      strong: 'Connection lost.',
      text: '',
      countdown: `Trying again in ${seconds} s.${keptFor(connection.keptUntil, now)}`,
      alert: true,
      tone: 'passing',
      action: { does: 'try now', word: 'Try now' },
    };
  }
  if (state === 'not connected') {
    return {
      strong: 'Not connected.',
      text: 'Nothing is sent and nothing is heard.',
      alert: false,
      tone: 'passing',
      action: { does: 'connect', word: 'Connect' },
    };
  }
  if (state === 'error') {
    if (cause?.kind === 'refused') {
      return { strong: 'This gateway cannot do that.', text: full(cause.message), alert: true, tone: 'bad', action: { does: 'settings', word: 'Settings' } };
    }
    const text = cause?.kind === 'malformed' ? 'The gateway sent a message that this page cannot read.' : 'The gateway cannot be reached.';
    return { strong: 'Connection error.', text, alert: true, tone: 'bad', action: { does: 'connect', word: 'Connect again' } };
  }
  if (state === 'disconnected') return closedBanner(cause?.kind === 'closed' ? cause.code : 0, idleMs);
  return null;
}

/** How long the session is kept, as 1:38; nothing when it is not, or nobody knows. */
function keptFor(until: number | undefined, now: number): string {
  if (until === undefined || !Number.isFinite(until) || until <= now) return '';
  const s = Math.ceil((until - now) / 1000);
  return ` The session is kept for ${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}.`;
}

function closedBanner(code: number, idleMs: number): Banner {
  const connect = (word: string): Banner['action'] => ({ does: 'connect', word });
  switch (code) {
    case 1008:
    case 4001:
      return { strong: 'The gateway refused this page.', text: '', alert: true, tone: 'bad', action: null };
    case 1009:
      return { strong: 'The gateway closed the connection:', text: 'a message was too big.', alert: true, tone: 'bad', action: connect('Connect again') };
    case 4002:
      return { strong: 'This session went on in another window.', text: '', alert: true, tone: 'bad', action: connect('Take it back') };
    case 4004:
      return { strong: 'The gateway is full.', text: '', alert: true, tone: 'bad', action: connect('Try again') };
    case 4005:
      return { strong: 'Disconnected.', text: `Closed after ${duration(idleMs)} without a turn.`, alert: true, tone: 'bad', action: connect('Start a new session') };
    case 4006:
      return { strong: 'The session has ended.', text: '', alert: true, tone: 'bad', action: connect('Start a new session') };
    default:
      return { strong: 'Disconnected.', text: 'The gateway closed the connection.', alert: true, tone: 'bad', action: connect('Start a new session') };
  }
}

/** In the words of the page: whole minutes, or seconds below one. */
export function duration(ms: number): string {
  const [n, unit] = ms < 60_000 ? [Math.round(ms / 1000), 'second'] : [Math.round(ms / 60_000), 'minute'];
  return `${n} ${unit}${n === 1 ? '' : 's'}`;
}

const faults: Record<Fault, [strong: string, text: string]> = {
  refused: ['Microphone refused.', 'Vela cannot hear you.'],
  none: ['No microphone found.', ''],
  'in use': ['Another program is using the microphone.', ''],
  insecure: ['No microphone.', 'The browser gives none to this address.'],
  broken: ['The microphone did not start.', ''],
};

function microphoneBanner(fault: Fault | null): Banner | null {
  if (!fault) return null;
  const [strong, text] = faults[fault];
  return { strong, text, alert: true, tone: 'bad', action: { does: 'microphone', word: 'Try again' } };
}

const wrong = ['Something went wrong in the gateway.', 'The session goes on.'] as const;

/** The words of every code that the protocol has. {agent} stands for its name. */
export const failureWords: Record<ErrorCode, readonly [strong: string, text: string]> = {
  invalid_json: wrong,
  invalid_message: wrong,
  internal: wrong,
  mocked_turn_in_flight: ['A turn is still running.', ''],
  turn_in_flight: ['A turn is still running.', ''],
  audio_too_long: ['Too long:', 'at most 10 minutes in one turn.'],
  rate_limited: ['Too fast.', 'Wait a moment.'],
  agent_unavailable: ['{agent} is not there.', ''],
  agent_failed: ['{agent} stopped with an error.', ''],
  agent_timeout: ['{agent} did not answer in time.', 'Your words are kept.'],
  speech_unavailable: ['Recognition is not available.', 'You can type.'],
  speech_failed: ['Recognition failed.', 'Say it again.'],
  session_limit: ['The gateway is full.', ''],
  turn_interrupted: ['The gateway was started again in the middle of the answer.', 'Your words are kept.'],
  unsupported: ['This gateway cannot do that.', 'Nothing changed.'],
  session_gone: ['The session has ended.', ''],
};

/** What can be asked again: the agent was not to blame for the words. */
const again = new Set(['agent_timeout', 'turn_interrupted']);

function failureBanner(model: Model): Banner | null {
  const { failure } = model.talk;
  if (!failure) return null;
  if (failure.code === saidOnly) return { strong: full(oneLine(failure.message)), text: '', alert: true, tone: 'bad', action: dismissFailure };
  const known = Object.hasOwn(failureWords, failure.code) ? failureWords[failure.code as ErrorCode] : wrong;
  const strong = known[0].replace('{agent}', agentName(model));
  if (failure.code === 'session_limit') return { strong, text: '', alert: true, tone: 'bad', action: { does: 'connect', word: 'Try again' } };
  // What is wrong with an agent the gateway says best.
  const why = failure.message && full(oneLine(failure.message));
  if (failure.code === 'agent_unavailable') {
    return { strong, text: why, alert: true, tone: 'bad', action: { does: 'settings', word: 'Choose another' } };
  }
  if (failure.code === 'speech_unavailable') {
    const why = model.engines?.transcriber?.why;
    const text = [why && full(why), model.turns === 'agent' && known[1]].filter(Boolean).join(' ');
    return { strong, text, alert: true, tone: 'bad', action: dismissFailure };
  }
  if (failure.code === 'agent_failed') return { strong, text: why, alert: true, tone: 'bad', action: dismissFailure };
  const asks = again.has(failure.code) && model.turns === 'agent' && model.talk.turns.at(-1)?.said;
  return { strong, text: known[1], alert: true, tone: 'bad', action: asks ? { does: 'ask again', word: 'Ask again' } : dismissFailure };
}
