import type { ApprovalRequestPayload } from '@vela/protocol';
import { oneLine, plain } from './plain';

/** A question that the agent asks before it uses a tool, and what became of it. */
export interface Approval {
  id: string;
  /** The use of a tool that it is about. */
  callId: string;
  name: string;
  summary: string;
  risk: 'low' | 'high';
  /** When no answer becomes a no, in ms of the clock. */
  until: number;
  outcome: 'asked' | 'allowed' | 'denied' | 'too late';
}

export const outcomeWords: Record<Approval['outcome'], string> = {
  asked: 'waits for you',
  allowed: 'you allowed it',
  denied: 'you said no',
  'too late': 'no answer in time, so no',
};

const longestSummary = 2000;

/** `heard` is when the question was put, in ms of the clock. What is not said to be harmless is not. */
export function asked({ approvalId, callId, name, summary, risk, expiresMs }: ApprovalRequestPayload, heard: number): Approval {
  const cut = summary.length > longestSummary ? `${summary.slice(0, longestSummary)}…` : summary;
  return {
    id: approvalId,
    callId,
    name: oneLine(name, 80),
    summary: plain(cut),
    risk: risk === 'low' ? 'low' : 'high',
    until: heard + Math.max(0, expiresMs),
    outcome: 'asked',
  };
}

export function decided(approval: Approval, id: string, outcome: 'allowed' | 'denied' | 'too late'): Approval {
  return approval.id === id && approval.outcome === 'asked' ? { ...approval, outcome } : approval;
}

/** What of these is still of use when the tool has returned: a question that somebody else has answered is none any more. */
export function settled(approvals: readonly Approval[], callId: string): readonly Approval[] {
  return approvals.some((a) => isOpen(a) && a.callId === callId) ? approvals.filter((a) => !(isOpen(a) && a.callId === callId)) : approvals;
}

/** The end of an answer ends its questions. */
export function withdrawn(approvals: readonly Approval[]): readonly Approval[] {
  return approvals.some(isOpen) ? approvals.filter((a) => !isOpen(a)) : approvals;
}

export function isOpen({ outcome }: Approval): boolean {
  return outcome === 'asked';
}

/** How long there is to answer, in words that change once a second, and towards the end only. */
export function timeLeft(until: number, now: number): string {
  const s = Math.max(0, Math.ceil((until - now) / 1000));
  const m = Math.ceil(s / 60);
  return s > 90 ? `About ${m} minutes to answer` : `${s} ${s === 1 ? 'second' : 'seconds'} to answer`;
}

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const key = 'vela.answered';

/**
 * What a page that is loaded again would be asked a second time: the answers to questions whose tool still runs. They are taken out as the
 * session's own ticket is.
 */
export function keepAnswers(store: Store | null, approvals: readonly Approval[]): void {
  const answers = approvals.filter((a) => a.outcome === 'allowed' || a.outcome === 'denied').map((a) => [a.id, a.outcome]);
  try {
    if (answers.length > 0) store?.setItem(key, JSON.stringify(answers));
    else store?.removeItem(key);
  } catch {
    // Then it is asked again, and the gateway knows the answer.
  }
}

export function takeAnswers(store: Store | null): Map<string, 'allowed' | 'denied'> {
  try {
    const kept: unknown = JSON.parse(store?.getItem(key) ?? '[]');
    store?.removeItem(key);
    if (!Array.isArray(kept)) return new Map();
    return new Map(kept.filter((a): a is [string, 'allowed' | 'denied'] => Array.isArray(a) && typeof a[0] === 'string' && /^(allowed|denied)$/.test(a[1])));
  } catch {
    return new Map();
  }
}
