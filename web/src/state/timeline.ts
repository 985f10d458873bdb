import type { Signal } from '../client/signal';
import { isObject } from '../client/decode';
import { kindOf, shownAtFirst, type Kind } from './kinds';
import { Ring } from './ring';
import { summary } from './summary';

/** How many signals the page keeps, and how many characters of them at most. */
export const keptSignals = 10_000;
const keptChars = 32 * 2 ** 20;

/** What is kept of one signal: the rest is read again from its text when somebody looks at it. */
export interface Entry {
  /** Counts from 0 on, as they came. */
  number: number;
  id: string;
  type: string;
  at: number;
  source: string;
  sourceId: string;
  correlation: string;
  agent: string;
  kind: Kind;
  summary: string;
  /** As it came: JSON. */
  text: string;
  chars: number;
}

/** One line of the list: a signal, or a run of pieces of one text. */
export interface Row {
  /** The first of the run. */
  entry: Entry;
  /** How many pieces it has. */
  count: number;
  /** The number of the last one. */
  last: number;
  summary: string;
}

/** What is to be seen. */
export interface Filter {
  kinds: ReadonlySet<Kind>;
  /** In the type, the source or the payload, whatever the case. */
  find: string;
  /** '' for all. */
  correlation: string;
}

/** Why the list stands still: somebody stopped it, looks at a signal, or at what came earlier. */
export type Hold = 'paused' | 'selected' | 'scrolled';

export const everything: Filter = { kinds: shownAtFirst, find: '', correlation: '' };

/** The longest text of a run that a row can show. */
const longestRun = 200;

const folding = new Set(['text_delta', 'thinking']);

/** Makes of a signal what is kept of it. */
export function entryOf(signal: Signal, text: string): Omit<Entry, 'number'> {
  const { payload, ...rest } = signal;
  return {
    ...rest,
    agent: typeof payload.agentId === 'string' ? payload.agentId : '',
    kind: kindOf(signal.type, payload),
    summary: summary(signal.type, payload),
    text,
    chars: text.length,
  };
}

/**
 * The last 10,000 signals, and the rows that are shown of them. Pieces of a text that one source sends in a row are one row. While it is held, what
 * comes is kept and counted, and the rows stay as they are.
 *
 * It knows nothing of the browser and of time. Whoever draws it looks at `version`, which changes with all that is drawn.
 */
export class Timeline {
  #ring: Ring<Entry>;
  #rows: Row[] = [];
  #head = 0; // rows before it are gone
  #runs = new Map<string, Row | null>(); // by source: the run that its next piece would go on with
  #filter = everything;
  #matches: (entry: Entry) => boolean = () => true;
  #nameOf: (entry: Entry) => string;
  #hold: Hold | null = null;
  #shown = 0; // rows that were there when it was held
  #limit = 0; // the number that came next then
  #newer = 0;
  #selected: Row | null = null;
  #version = 0;
  #gone = 0;

  /** nameOf is what a signal's source is called, for who looks for it by name. */
  constructor(nameOf: (entry: Entry) => string = (entry) => entry.source, capacity = keptSignals) {
    this.#ring = new Ring(capacity, keptChars);
    this.#nameOf = nameOf;
    this.#setMatches();
  }

  get version(): number {
    return this.#version;
  }

  get filter(): Filter {
    return this.#filter;
  }

  get hold(): Hold | null {
    return this.#hold;
  }

  /** How many signals are kept. */
  get kept(): number {
    return this.#ring.length;
  }

  get capacity(): number {
    return this.#ring.capacity;
  }

  /** How many signals that would be shown came since it was held. */
  get newer(): number {
    return this.#newer;
  }

  get selected(): Row | null {
    return this.#selected;
  }

  /** How many rows there are to be seen. */
  get length(): number {
    return this.#hold ? this.#shown : this.#rows.length - this.#head;
  }

  /** How many rows have gone at the beginning of the list so far, which then is that much shorter. */
  get gone(): number {
    return this.#gone;
  }

  row(index: number): Row | undefined {
    return index >= 0 && index < this.length ? this.#rows[this.#head + index] : undefined;
  }

  /** Where a row is among those to be seen; -1 where it is not. */
  indexOf(row: Row | null): number {
    if (!row) return -1;
    let low = this.#head;
    let high = this.#head + this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#rows[middle]!.entry.number < row.entry.number) low = middle + 1;
      else high = middle;
    }
    return this.#rows[low] === row ? low - this.#head : -1;
  }

  add(entry: Omit<Entry, 'number'>): Entry {
    const whole: Entry = { ...entry, number: this.#ring.end };
    this.#ring.push(whole);
    this.#version++;
    if (this.#matches(whole)) {
      this.#append(whole);
      if (this.#hold) this.#newer++;
    } else {
      this.#runs.delete(runOf(whole));
    }
    this.#forget();
    return whole;
  }

  setFilter(change: Partial<Filter>): void {
    this.#filter = { ...this.#filter, ...change };
    this.#setMatches();
    const { selected } = this;
    this.#rows = [];
    this.#head = 0;
    this.#runs.clear();
    this.#shown = 0;
    this.#newer = 0;
    for (let n = this.#ring.first; n < this.#ring.end; n++) {
      const entry = this.#ring.at(n)!;
      if (n === this.#limit && this.#hold) {
        this.#shown = this.#rows.length;
        this.#runs.clear();
      }
      if (!this.#matches(entry)) {
        this.#runs.delete(runOf(entry));
        continue;
      }
      this.#append(entry);
      if (this.#hold && n >= this.#limit) this.#newer++;
    }
    if (this.#hold && this.#limit >= this.#ring.end) this.#shown = this.#rows.length;
    this.#selected = selected && (this.#rows.find((r) => r.entry.number <= selected.entry.number && r.last >= selected.entry.number && sameRun(r.entry, selected.entry)) ?? selected);
    this.#version++;
  }

  /** Has the rows stand still. What holds them already does so from when it began. */
  stand(why: Hold): void {
    this.#version++;
    if (this.#hold) {
      this.#hold = why;
      return;
    }
    this.#shown = this.length;
    this.#limit = this.#ring.end;
    this.#newer = 0;
    this.#runs.clear();
    this.#hold = why;
  }

  select(row: Row | null): void {
    this.#selected = row;
    if (row && this.#hold !== 'paused') this.stand('selected');
    this.#version++;
  }

  /** Goes on with the newest, and lets go of what was selected. */
  follow(): void {
    this.#hold = null;
    this.#newer = 0;
    this.#selected = null;
    this.#version++;
  }

  /** All that is kept and belongs together, in order. */
  episode(correlation: string): Entry[] {
    const found: Entry[] = [];
    if (correlation === '') return found;
    for (let n = this.#ring.first; n < this.#ring.end; n++) {
      const entry = this.#ring.at(n)!;
      if (entry.correlation === correlation) found.push(entry);
    }
    return found;
  }

  /** The pieces of a run, as far as they are kept. */
  pieces({ entry, last }: Row): Entry[] {
    const found: Entry[] = [];
    for (let n = Math.max(entry.number, this.#ring.first); n <= last; n++) {
      const piece = this.#ring.at(n);
      if (piece && sameRun(piece, entry)) found.push(piece);
    }
    return found;
  }

  #append(entry: Entry): void {
    const source = runOf(entry);
    const run = this.#runs.get(source);
    if (run && sameRun(run.entry, entry) && run.entry.number >= this.#ring.first) {
      run.count++;
      run.last = entry.number;
      if (run.summary.length < longestRun) run.summary = `${run.summary}${entry.summary}`.slice(0, longestRun);
      return;
    }
    const row: Row = { entry, count: 1, last: entry.number, summary: entry.summary };
    this.#rows.push(row);
    this.#runs.set(source, folding.has(entry.type) ? row : null);
    if (this.#runs.size > mostRuns) this.#runs.delete(this.#runs.keys().next().value!);
  }

  /** Rows of which the first signal is not kept any more go. */
  #forget(): void {
    while (this.#head < this.#rows.length && this.#rows[this.#head]!.entry.number < this.#ring.first) {
      this.#head++;
      this.#gone++;
      if (this.#hold && this.#shown > 0) this.#shown--;
    }
    if (this.#head < 4096) return;
    this.#rows.splice(0, this.#head);
    this.#head = 0;
  }

  #setMatches(): void {
    const { kinds, find, correlation } = this.#filter;
    // Sticky to nothing and without allocating: it is asked for each signal there is.
    const pattern = find.trim() === '' ? null : new RegExp(find.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'ig');
    const within = (text: string, from = 0): boolean => {
      pattern!.lastIndex = from;
      return pattern!.test(text);
    };
    this.#matches = (e) => {
      if (!kinds.has(e.kind) || (correlation !== '' && e.correlation !== correlation)) return false;
      if (!pattern) return true;
      return within(e.type) || within(e.source) || within(this.#nameOf(e)) || within(e.summary) || within(e.text, Math.max(0, e.text.indexOf('"payload":') + 10));
    };
  }
}

/** How many sources may be in the middle of a text. */
const mostRuns = 256;

function runOf({ source, sourceId }: Entry): string {
  return `${sourceId}\n${source}`;
}

function sameRun(a: Entry, b: Entry): boolean {
  return a === b || (folding.has(a.type) && a.type === b.type && a.correlation === b.correlation && a.agent === b.agent && runOf(a) === runOf(b));
}

/** The payload and what else there is of a signal, for who looks at it; null for what is none. */
export function wholeOf(entry: Entry): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(entry.text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
