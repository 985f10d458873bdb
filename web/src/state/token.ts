type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const key = 'vela.token';

/** What a subprotocol may hold (RFC 9110, token), which every JWT is. */
export function isToken(text: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text);
}

/** The token in the address, as #token=…; null when there is none. */
export function tokenIn(hash: string): string | null {
  const token = new URLSearchParams(hash.replace(/^#/, '')).get('token')?.trim() ?? '';
  return isToken(token) ? token : null;
}

/** It is kept for this tab only, and as long as that is open. */
export function readToken(store: Store | null): string | null {
  try {
    const token = store?.getItem(key) ?? '';
    return isToken(token) ? token : null;
  } catch {
    return null; // storage may be closed to the page
  }
}

export function writeToken(store: Store | null, token: string | null): void {
  try {
    if (token === null) store?.removeItem(key);
    else store?.setItem(key, token);
  } catch {
    // It holds until the page is left.
  }
}

/** What a JWT says of itself. What cannot be read says nothing; the gateway judges. */
function claims(token: string): { exp?: unknown; signals?: unknown } {
  try {
    return Object(JSON.parse(atob(token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))));
  } catch {
    return {};
  }
}

/** Whether its time is over. */
export function isOver(token: string, now: number): boolean {
  const { exp } = claims(token);
  return typeof exp === 'number' && exp * 1000 <= now;
}

/** Whether it allows to see signals. */
export function mayFollow(token: string): boolean {
  const { signals } = claims(token);
  return Array.isArray(signals) && signals.includes('follow');
}
