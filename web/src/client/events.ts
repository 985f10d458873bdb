import { wordsOf } from './ask';
import { backoff } from './backoff';
import { provenAfter, type Timers } from './line';

/** One event of an event stream of the gateway's. */
export interface ServerSent {
  data: string;
  /** The place behind it, to come back to; '' where there is none. */
  id: string;
  /** How many before it this reader was too late for. */
  missed: number;
}

/** How it goes with a stream. One that is refused is not tried again. */
export type Following = { state: 'off' } | { state: 'connecting' } | { state: 'open' } | { state: 'waiting'; retryAt: number } | { state: 'refused'; words: string };

/** Which stream to follow, and who is told of it. */
export interface EventStreamOptions {
  url: string;
  token(): string | null;
  timers: Timers;
  /** Where to begin; without it, at what comes next. */
  from?: string;
  random?(): number;
  fetch?: typeof fetch;
  /** What came in one piece, in order. */
  onEvents(events: readonly ServerSent[]): void;
  onState(state: Following): void;
}

/** A place that no log has: it stands for the beginning of what is kept. */
export const beginning = '0';

/** The gateway says something at least every 15 s; what is silent for so long is dead. */
const silentFor = 45_000;

/** How long one piece of work may hold the page up before it lets others in, in ms. */
const atOnce = 8;

/** The longest event, in characters, that somebody sends who means well: a signal has at most 512 KiB. */
const longestEvent = 2 ** 20;

/**
 * Follows an event stream with fetch(), since an EventSource can show no token and does not say why it was refused. It comes back by itself to where
 * it was, until stop().
 */
export class EventStream {
  #o: EventStreamOptions;
  #abort: AbortController | null = null;
  #timer: unknown = null;
  #failures = 0;
  #place: string | null;

  constructor(options: EventStreamOptions) {
    this.#o = options;
    this.#place = options.from ?? null;
  }

  start(): void {
    if (!this.#abort) void this.#follow();
  }

  stop(): void {
    this.#o.timers.clear(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
    this.#o.onState({ state: 'off' });
  }

  async #follow(): Promise<void> {
    const { timers, onState, random = Math.random } = this.#o;
    const abort = new AbortController();
    this.#abort = abort;
    onState({ state: 'connecting' });
    const began = timers.now();
    const refused = await this.#attempt(abort).catch(() => null);
    if (this.#abort !== abort) return; // stopped, or begun anew
    timers.clear(this.#timer);
    abort.abort();
    if (refused !== null) return onState({ state: 'refused', words: refused });
    this.#failures = timers.now() - began > provenAfter ? 0 : this.#failures + 1;
    const wait = backoff(this.#failures, random);
    this.#timer = timers.set(() => void this.#follow(), wait);
    onState({ state: 'waiting', retryAt: timers.now() + wait });
  }

  /** One connection, until it is lost. Returns why it was refused; null, or throws, when it is worth another try. */
  async #attempt(abort: AbortController): Promise<string | null> {
    const { url, token, onState, fetch: get = fetch } = this.#o;
    const who = token();
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    if (who !== null) headers.authorization = `Bearer ${who}`;
    if (this.#place !== null) headers['last-event-id'] = this.#place;
    this.#listen(abort);
    const answer = await get(url, { headers, cache: 'no-store', signal: abort.signal });
    if ([401, 403, 404].includes(answer.status)) return wordsOf(answer);
    if (!answer.ok || !answer.body || abort.signal.aborted) return null;
    onState({ state: 'open' });
    await this.#read(answer.body, abort);
    return null;
  }

  async #read(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    const { timers, onEvents } = this.#o;
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    let since = performance.now();
    for (;;) {
      const { value, done } = await reader.read();
      if (done || abort.signal.aborted) return;
      this.#listen(abort);
      const events = parser.read(decoder.decode(value, { stream: true }));
      for (const { id } of events) if (id !== '') this.#place = id;
      if (events.length > 0) onEvents(events);
      // What waits in the browser would otherwise be taken in one go, however much it is.
      if (performance.now() - since < atOnce) continue;
      await new Promise<void>((go) => timers.set(go, 0));
      since = performance.now();
    }
  }

  #listen(abort: AbortController): void {
    const { timers } = this.#o;
    timers.clear(this.#timer);
    this.#timer = timers.set(() => abort.abort(), silentFor);
  }
}

/** Reads text/event-stream as the gateway writes it: its fields in lines, a blank line after each event, and what was missed in a remark. */
export class EventParser {
  #rest = '';

  /** Takes the next piece, and returns the events that are whole with it. Throws on one that does not end. */
  read(piece: string): ServerSent[] {
    const whole = this.#rest + piece;
    const end = whole.lastIndexOf('\n\n');
    this.#rest = end < 0 ? whole : whole.slice(end + 2);
    if (this.#rest.length > longestEvent) throw new Error('an event without an end');
    return end < 0 ? [] : whole.slice(0, end).split('\n\n').flatMap(readEvent);
  }
}

function readEvent(text: string): ServerSent[] {
  const event: ServerSent = { data: '', id: '', missed: 0 };
  const data: string[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else if (line.startsWith('id:')) event.id = line.slice(3).trim();
    else if (line.startsWith(': missed ')) event.missed = Number(line.slice(9)) || 0;
  }
  if (data.length === 0) return [];
  event.data = data.join('\n');
  return [event];
}
