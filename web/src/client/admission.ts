/** Where in LiveKit somebody wants to be, and as whom. */
export interface Place {
  room: string;
  identity: string;
  /** For people; '' for none. */
  name: string;
}

/** What lets into a room: LiveKit's address, and the token for it. */
export interface Admission {
  url: string;
  token: string;
}

/** Why there is none. */
export type Refusal =
  /** The gateway wants to know first who comes. */
  | { kind: 'sign in' }
  /** The gateway has no LiveKit. */
  | { kind: 'none' }
  /** It answers, and says no; with its words, where it has any. */
  | { kind: 'refused'; words: string }
  /** It does not answer. */
  | { kind: 'gone' };

const json = { 'content-type': 'application/json' };

function headers(credential: string | null): HeadersInit {
  return credential === null ? json : { ...json, authorization: `Bearer ${credential}` };
}

/**
 * Asks the gateway for a token, in the format of LiveKit's token endpoints (https://docs.livekit.io/frontends/build/authentication/endpoint).
 * credential says who comes, to a gateway that wants to know. Never throws.
 */
export async function fetchAdmission(
  { room, identity, name }: Place,
  credential: string | null = null,
  get: typeof fetch = fetch,
  withinMs = 5000,
): Promise<Admission | Refusal> {
  try {
    const body = JSON.stringify({ room_name: room, participant_identity: identity, ...(name !== '' && { participant_name: name }) });
    const answer = await get('/api/livekit/token', { method: 'POST', headers: headers(credential), body, cache: 'no-store', signal: AbortSignal.timeout(withinMs) });
    if (answer.ok) return readAdmission(await answer.json());
    if (answer.status === 401) return { kind: 'sign in' };
    // 404 of a gateway that knows no rooms, 405 of one that takes no POST there, 501 and 503 of one that says so.
    if ([404, 405, 501, 503].includes(answer.status)) return { kind: 'none' };
    return answer.status >= 500 ? { kind: 'gone' } : { kind: 'refused', words: await wordsOf(answer) };
  } catch {
    return { kind: 'gone' };
  }
}

function readAdmission(value: unknown): Admission | Refusal {
  const { server_url: url, participant_token: token } = (value ?? {}) as Record<string, unknown>;
  return typeof url === 'string' && typeof token === 'string' && url !== '' && token !== '' ? { url, token } : { kind: 'refused', words: '' };
}

async function wordsOf(answer: Response): Promise<string> {
  const { message } = ((await answer.json().catch(() => null)) ?? {}) as Record<string, unknown>;
  return typeof message === 'string' ? message : '';
}

/** Asks the gateway to send an agent into a room where none has come by itself. One that is there already is left alone. Never throws. */
export async function summonAgent(room: string, credential: string | null = null, get: typeof fetch = fetch, withinMs = 5000): Promise<void> {
  try {
    await get(`/api/livekit/rooms/${encodeURIComponent(room)}/join`, { method: 'POST', headers: headers(credential), signal: AbortSignal.timeout(withinMs) });
  } catch {
    // Whether one comes is seen in the room.
  }
}
