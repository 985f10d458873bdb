import type { Played } from './speaker';

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const key = 'vela.played';

/** Leaves for the page that comes next how far the last answer was played, beside the session that it takes up. */
export function keepPlayed(store: Store | null, sessionId: string | null, played: Played | null): void {
  if (sessionId === null || played === null) return;
  try {
    store?.setItem(key, JSON.stringify({ sessionId, ...played }));
  } catch {
    // Then nothing old is played again.
  }
}

/** Takes it out: it is of use once. */
export function takePlayed(store: Store | null): (Played & { sessionId: string }) | null {
  try {
    const text = store?.getItem(key) ?? null;
    store?.removeItem(key);
    const { sessionId, responseId, playedMs } = JSON.parse(text ?? '{}') as Record<string, unknown>;
    if (typeof sessionId !== 'string' || typeof responseId !== 'string' || !Number.isFinite(playedMs)) return null;
    return { sessionId, responseId, playedMs: playedMs as number };
  } catch {
    return null;
  }
}
