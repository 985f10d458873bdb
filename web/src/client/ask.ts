/** What the gateway made of a request: its answer, or in words why there is none. */
export type Answer = { ok: true; value: unknown } | { ok: false; status: number; words: string };

/** Who asks, and how; a test hands in its own fetch. */
export interface Asker {
  token(): string | null;
  fetch?: typeof fetch;
}

/** What is asked. */
export interface Request {
  /** GET, unless given. */
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Sent as JSON. */
  body?: unknown;
  /** How long the answer may take; 10 s, unless given. */
  withinMs?: number;
}

/** Asks the gateway, on the page's own origin. What it refuses it refuses in its own words, where it has any. Never throws. */
export async function ask(asker: Asker, path: string, { method = 'GET', body, withinMs = 10_000 }: Request = {}): Promise<Answer> {
  const get = asker.fetch ?? fetch;
  const token = asker.token();
  const headers: Record<string, string> = {};
  if (token !== null) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  try {
    const answer = await get(path, {
      method,
      headers,
      cache: 'no-store',
      signal: AbortSignal.timeout(withinMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) return { ok: false, status: answer.status, words: await wordsOf(answer) };
    return { ok: true, value: answer.status === 204 ? null : await answer.json() };
  } catch {
    return { ok: false, status: 0, words: 'The gateway does not answer.' };
  }
}

const longestWords = 500;

/** What a refusal says: its message, and for a signal its error. */
export async function wordsOf(answer: Response): Promise<string> {
  const value = (await answer.json().catch(() => null)) as { message?: unknown; error?: unknown } | null;
  const said = typeof value?.message === 'string' ? value.message : typeof value?.error === 'string' ? value.error : '';
  return said === '' ? `The gateway refused this (${answer.status}).` : said.slice(0, longestWords);
}
