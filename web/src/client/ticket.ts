/** What it takes to take a session up again. */
export interface Ticket {
  token: string;
  /** The last event that was handed over. */
  after: number;
  /** How long the session outlives its connection. */
  windowMs: number;
}

/** Where tickets lie: the tab's own storage. */
export type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const key = 'vela.session';

/** The ticket that was kept, and takes it out: it is for one. Storage may be closed to a page, which then has none. */
export function takeTicket(store: Store | null): Ticket | null {
  try {
    const kept: unknown = JSON.parse(store?.getItem(key) ?? 'null');
    store?.removeItem(key);
    if (typeof kept !== 'object' || kept === null) return null;
    const { token, after, windowMs } = kept as Record<string, unknown>;
    if (typeof token !== 'string' || !Number.isSafeInteger(after) || !Number.isSafeInteger(windowMs)) return null;
    return { token, after: after as number, windowMs: windowMs as number };
  } catch {
    return null;
  }
}

/** Keeps a ticket for whoever loads the page in this tab next. */
export function keepTicket(store: Store | null, { token, after, windowMs }: Ticket): void {
  try {
    store?.setItem(key, JSON.stringify({ token, after, windowMs }));
  } catch {
    // Then the next page begins anew.
  }
}

/** The session is over: nobody takes it up. */
export function dropTicket(store: Store | null): void {
  try {
    store?.removeItem(key);
  } catch {
    // It was never there.
  }
}
