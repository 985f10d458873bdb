import { ask, type Answer, type Asker } from './ask';
import { isObject } from './decode';

/** How a source is: ready to connect, on the way, connected, failed, or known and not to be reached. */
export type SourceState = 'disconnected' | 'connecting' | 'connected' | 'error' | 'unavailable';

/** One source of signals, as the gateway tells of it (gateway/source). Its key is never among it. */
export interface Source {
  id: string;
  name: string;
  /** #rrggbb, by which it is told from other remote ones. */
  colour: string;
  protocol: string;
  url: string;
  /** Found on the gateway's machine, rather than added by somebody. */
  local: boolean;
  state: SourceState;
  /** Why it failed; '' unless it did. */
  error: string;
  perSecond: number;
  models: readonly string[];
  /** The chosen one; '' for none. */
  model: string;
  needsKey: boolean;
  hasKey: boolean;
  tokenAutoFilled: boolean;
}

const states: readonly SourceState[] = ['disconnected', 'connecting', 'connected', 'error', 'unavailable'];
const mostSources = 256;
const mostModels = 1000;

/** Reads one source; null for what is none. */
export function readSource(value: unknown): Source | null {
  if (!isObject(value) || typeof value.id !== 'string' || value.id === '') return null;
  const v = value;
  const words = (word: unknown): string => (typeof word === 'string' ? word : '');
  return {
    id: v.id as string,
    name: words(v.name) || (v.id as string),
    colour: words(v.colour),
    protocol: words(v.protocol),
    url: words(v.url),
    local: v.local === true,
    state: states.find((s) => s === v.state) ?? 'unavailable',
    error: words(v.error),
    perSecond: typeof v.eventsPerSecond === 'number' ? v.eventsPerSecond : 0,
    models: Array.isArray(v.models) ? v.models.filter((m) => typeof m === 'string').slice(0, mostModels) : [],
    model: words(v.model),
    needsKey: v.needsKey === true,
    hasKey: v.hasKey === true,
    tokenAutoFilled: v.tokenAutoFilled === true,
  };
}

/** Reads {"sources": […]}; null when it is not that. */
export function readSources(value: unknown): Source[] | null {
  if (!isObject(value) || !Array.isArray(value.sources)) return null;
  return value.sources.slice(0, mostSources).flatMap((s) => readSource(s) ?? []);
}

const at = (id: string, what = ''): string => `/api/sources/${encodeURIComponent(id)}${what}`;

/** What can be asked of the gateway about sources. How they are then comes with the stream at /api/sources/stream. */
export class Sources {
  #asker: Asker;

  constructor(asker: Asker) {
    this.#asker = asker;
  }

  add(url: string, name: string, key: string): Promise<Answer> {
    return this.#post('/api/sources', { url, ...(name !== '' && { name }), ...(key !== '' && { key }) });
  }

  remove(id: string): Promise<Answer> {
    return ask(this.#asker, at(id), { method: 'DELETE' });
  }

  scan(): Promise<Answer> {
    return this.#post('/api/sources/scan');
  }

  connect(id: string): Promise<Answer> {
    return this.#post(at(id, '/connect'));
  }

  disconnect(id: string): Promise<Answer> {
    return this.#post(at(id, '/disconnect'));
  }

  /** An empty key forgets the one there was. */
  setKey(id: string, key: string): Promise<Answer> {
    return ask(this.#asker, at(id, '/key'), { method: 'PUT', body: { key } });
  }

  /** Has the gateway take the key from the program's own file on its machine. */
  pasteKey(id: string): Promise<Answer> {
    return this.#post(at(id, '/key/paste'));
  }

  chooseModel(id: string, model: string): Promise<Answer> {
    return ask(this.#asker, at(id, '/model'), { method: 'PUT', body: { model } });
  }

  prompt(id: string, text: string): Promise<Answer> {
    return this.#post(at(id, '/prompt'), { text });
  }

  /** Stops the prompts that run. */
  stop(id: string): Promise<Answer> {
    return this.#post(at(id, '/stop'));
  }

  #post(path: string, body?: unknown): Promise<Answer> {
    return ask(this.#asker, path, { method: 'POST', ...(body !== undefined && { body }) });
  }
}
