/** What answers: the fixed turns of version 1, or an agent in version 2. */
export type Turns = 'deterministic' | 'agent';

/** A part of the gateway that may or may not be there: an agent, a recogniser, a voice. */
export interface Engine {
  name: string;
  label: string;
  available: boolean;
  /** Why it is not available. */
  why: string;
  /** How to get a better one. */
  better: string;
}

/** What the gateway has, and which turns it runs unless asked otherwise. */
export interface Engines {
  turns: Turns;
  agent: Engine | null;
  transcriber: Engine | null;
  /** The first that is available recognises, and the next where it fails. */
  ears: readonly Engine[];
  /** The first that is available speaks, and the next where it fails. */
  voices: readonly Engine[];
  /** The first that is available tells speech from silence. */
  detectors: readonly Engine[];
}

function engine(value: unknown): Engine | null {
  if (typeof value !== 'object' || value === null) return null;
  const v = value as Record<string, unknown>;
  if (typeof v.name !== 'string' || v.name === '') return null;
  const words = (word: unknown): string => (typeof word === 'string' ? word : '');
  return {
    name: v.name,
    label: words(v.label) || v.name,
    available: v.available === true,
    why: words(v.why),
    better: words(v.better),
  };
}

/** Reads what /api/engines answered; null when it is not that. */
export function readEngines(value: unknown): Engines | null {
  if (typeof value !== 'object' || value === null) return null;
  const v = value as Record<string, unknown>;
  const turns = readTurns(v.turns);
  const list = (all: unknown): Engine[] => (Array.isArray(all) ? all.map(engine).filter((e) => e !== null) : []);
  const transcriber = engine(v.transcriber);
  const ears = list(v.ears);
  return turns
    ? {
        turns,
        agent: engine(v.agent),
        transcriber,
        ears: ears.length > 0 || !transcriber ? ears : [transcriber],
        voices: list(v.voices),
        detectors: list(v.detectors),
      }
    : null;
}

/** A kind of turns by its name; null for any other value. */
export function readTurns(value: unknown): Turns | null {
  return value === 'agent' || value === 'deterministic' ? value : null;
}

/** Asks the gateway, which itself asks others for up to 3 s; null when it does not answer in time, or not so that it can be read; 'sign in' when it wants to know first who asks. */
export async function fetchEngines(token: string | null = null, get: typeof fetch = fetch, withinMs = 6000): Promise<Engines | 'sign in' | null> {
  try {
    const headers: HeadersInit = token === null ? {} : { authorization: `Bearer ${token}` };
    const answer = await get('/api/engines', { signal: AbortSignal.timeout(withinMs), cache: 'no-store', headers });
    if (answer.status === 401) return 'sign in';
    return answer.ok ? readEngines(await answer.json()) : null;
  } catch {
    return null;
  }
}

/** The address of the gateway's socket, on the page's own origin. */
export function socketAddress(page: { protocol: string; host: string }, turns: Turns): string {
  return `${page.protocol === 'https:' ? 'wss:' : 'ws:'}//${page.host}/ws?turns=${turns}`;
}
