/** One of the agents that a session of version 2 can have. */
export interface Agent {
  name: string;
  label: string;
  /** Whose protocol it speaks. */
  kind: string;
  available: boolean;
  /** Why it is not available, and what to do. */
  why: string;
  /** The names of what it can do beside talking. */
  tools: readonly string[];
}

/** The agents of a gateway, and which of them answers whoever does not choose. */
export interface Agents {
  default: string;
  agents: readonly Agent[];
}

const most = 100;

function agent(value: unknown): Agent[] {
  if (typeof value !== 'object' || value === null) return [];
  const { name, label, kind, available, why, tools } = value as Record<string, unknown>;
  if (typeof name !== 'string' || name === '') return [];
  const words = (word: unknown): string => (typeof word === 'string' ? word : '');
  return [
    {
      name,
      label: words(label) || name,
      kind: words(kind),
      available: available === true,
      why: words(why),
      tools: Array.isArray(tools) ? tools.filter((t) => typeof t === 'string').slice(0, most) : [],
    },
  ];
}

/** Reads what /api/agents answered; null when it is not that. */
export function readAgents(value: unknown): Agents | null {
  if (typeof value !== 'object' || value === null) return null;
  const { default: first, agents } = value as Record<string, unknown>;
  if (!Array.isArray(agents)) return null;
  return { default: typeof first === 'string' ? first : '', agents: agents.slice(0, most).flatMap(agent) };
}

/** Asks the gateway; null when it does not answer in time, or not so that it can be read. */
export async function fetchAgents(token: string | null = null, get: typeof fetch = fetch, withinMs = 6000): Promise<Agents | null> {
  try {
    const headers: HeadersInit = token === null ? {} : { authorization: `Bearer ${token}` };
    const answer = await get('/api/agents', { signal: AbortSignal.timeout(withinMs), cache: 'no-store', headers });
    return answer.ok ? readAgents(await answer.json()) : null;
  } catch {
    return null;
  }
}
