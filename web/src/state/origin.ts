import type { Signal } from '../client/signal';
import type { Source } from '../client/sources';

/** Whose a signal is, for people: by name, and by the colour and the shape of a pennant. */
export interface Origin {
  /** Equal for signals of one origin. */
  key: string;
  name: string;
  identity: string;
}

const known: Record<string, string> = {
  'local:claude-code': 'claude',
  'local:openclaw': 'openclaw',
  'local:lm-studio': 'lmstudio',
  'local:ollama': 'ollama',
};

/** What produces signals without being a source that the gateway connects to. */
const producers: Record<string, { name: string; identity: string }> = {
  'adapter:tap': { name: 'Claude Code', identity: 'claude' },
  openclaw: { name: 'OpenClaw', identity: 'openclaw' },
  http: { name: 'Posted', identity: 'posted' },
};

/** The gateway's colours of remote sources, each with the pennant of the page that comes next to it and has contrast in light and in dark. */
const pennants: Record<string, string> = {
  '#4f8ef7': 'r2',
  '#f76b15': 'r1b',
  '#30a46c': 'r4',
  '#d6409f': 'r5',
  '#ffb224': 'r1',
  '#12a594': 'r4b',
  '#ab4aba': 'r3',
  '#8d8d8d': 'r6',
};

/** Which pennant a source has. */
export function identityOf({ id, protocol, colour }: Pick<Source, 'id' | 'protocol' | 'colour'>): string {
  return known[id] ?? (protocol === 'midi' ? 'midi' : (pennants[colour.toLowerCase()] ?? 'r6'));
}

/** Whose a signal is. The source that it came through says it, then what produced it. */
export function originOf(signal: Pick<Signal, 'source' | 'sourceId' | 'type'>, sources: ReadonlyMap<string, Source>): Origin {
  const source = sources.get(signal.sourceId) ?? sources.get(signal.source);
  if (source) return { key: source.id, name: source.name, identity: identityOf(source) };
  if (signal.sourceId !== '') return { key: signal.sourceId, name: signal.source, identity: known[signal.sourceId] ?? 'r6' };
  if (signal.type.startsWith('midi.')) return { key: signal.source, name: signal.source, identity: 'midi' };
  // Every session has one of its own; told apart they are by their correlation.
  if (signal.source.startsWith('session:')) return { key: 'session', name: 'Vela', identity: 'vela' };
  const producer = Object.hasOwn(producers, signal.source) ? producers[signal.source]! : { name: signal.source, identity: 'posted' };
  return { key: signal.source, ...producer };
}
