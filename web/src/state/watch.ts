import { signal, type ReadonlySignal } from '@preact/signals';
import type { Answer, Asker } from '../client/ask';
import { beginning, EventStream, type Following, type ServerSent } from '../client/events';
import type { Timers } from '../client/line';
import { readSignal } from '../client/signal';
import { readSource, readSources, Sources, type Source } from '../client/sources';
import type { Consent } from './consent';
import { kinds, type Kind } from './kinds';
import { Meter } from './meter';
import { originOf, type Origin } from './origin';
import { Sky } from './sky';
import { entryOf, Timeline, type Entry, type Filter, type Hold, type Row, everything } from './timeline';

/** What is counted, as it was a moment ago. */
export interface Counts {
  perSecond: number;
  ofKind: Record<Kind, number>;
  kept: number;
  /** Rows to be seen. */
  rows: number;
  newer: number;
  hold: Hold | null;
}

/** What the watch needs of the browser. */
export interface WatchOptions extends Asker {
  timers: Timers;
  consent: Consent;
  /** Calls back when the next frame is drawn, or not before the page can be seen again. */
  frame(draw: () => void): void;
}

const claudeCode = 'local:claude-code';

/** How often what is counted is shown anew, in ms. */
const betweenCounts = 500;

/** Rates are kept for so many origins and types. */
const mostMeters = 512;

/**
 * All that the views of signals and of wiring show: the sources, the timeline, the sky and the rates. It follows the gateway's streams while somebody
 * watches, and comes back to where it was when somebody does again.
 *
 * What comes is taken at once, and drawn once a frame: onDraw().
 */
export class Watch {
  readonly timeline: Timeline;
  readonly sky = new Sky();
  readonly sources: Sources;
  readonly consent: Consent;
  #o: WatchOptions;
  #signals: EventStream;
  #changes: EventStream;
  #watchers = 0;
  #drawers = new Set<() => void>();
  #drawing = false;
  #counting: unknown = null;
  #meter = new Meter();
  #ofKind = new Map<Kind, Meter>(kinds.map((k) => [k, new Meter()]));
  #ofType = new Map<string, Meter>();
  #ofOrigin = new Map<string, Meter>();
  #origins = new Map<string, Origin>();
  #following = signal<Following>({ state: 'off' });
  #listing = signal<Following>({ state: 'off' });
  #known = signal<ReadonlyMap<string, Source>>(new Map());
  #listed = signal(false);
  #lists = 0; // that the stream has brought
  #counts = signal<Counts>({ perSecond: 0, ofKind: noRates(), kept: 0, rows: 0, newer: 0, hold: null });
  #selected = signal<Row | null>(null);
  #filter = signal<Filter>(everything);
  #byKey = new Map<string, Origin>();
  #episode: { correlation: string; at: number; entries: readonly Entry[] } = { correlation: '', at: 0, entries: [] };
  #missed = signal(0);
  #asked = false; // whether Claude Code was connected by itself on this page

  constructor(options: WatchOptions) {
    this.#o = options;
    this.consent = options.consent;
    this.sources = new Sources(options);
    this.timeline = new Timeline((entry) => this.originOf(entry).name);
    const common = { token: options.token, timers: options.timers, ...(options.fetch && { fetch: options.fetch }) };
    this.#signals = new EventStream({
      ...common,
      url: '/__signals__/stream',
      from: beginning,
      onEvents: (events) => this.#take(events),
      onState: (state) => (this.#following.value = state),
    });
    this.#changes = new EventStream({
      ...common,
      url: '/api/sources/stream',
      onEvents: (events) => this.#list(events),
      onState: (state) => (this.#listing.value = state),
    });
  }

  /** How it goes with the stream of signals. */
  get following(): ReadonlySignal<Following> {
    return this.#following;
  }

  /** How it goes with the list of sources. */
  get listing(): ReadonlySignal<Following> {
    return this.#listing;
  }

  /** The sources, by id, in the gateway's order. */
  get known(): ReadonlySignal<ReadonlyMap<string, Source>> {
    return this.#known;
  }

  /** Whether the gateway has said which sources there are. */
  get listed(): ReadonlySignal<boolean> {
    return this.#listed;
  }

  get counts(): ReadonlySignal<Counts> {
    return this.#counts;
  }

  /** How many signals were gone before this page could have them. */
  get missed(): ReadonlySignal<number> {
    return this.#missed;
  }

  /** The clock, in ms. */
  now(): number {
    return this.#o.timers.now();
  }

  /** Somebody watches, until the function that this returns is called. */
  begin(): () => void {
    if (this.#watchers++ === 0) {
      this.#signals.start();
      if (this.#o.token() === null) this.#changes.start(); // no token allows to see the sources
      this.#count();
    }
    let watching = true;
    return () => {
      if (!watching) return;
      watching = false;
      if (--this.#watchers > 0) return;
      this.#signals.stop();
      this.#changes.stop();
      this.#o.timers.clear(this.#counting);
    };
  }

  /** Calls back in each frame in which there may be something new to draw, until the function that this returns is called. */
  onDraw(draw: () => void): () => void {
    this.#drawers.add(draw);
    this.redraw();
    return () => this.#drawers.delete(draw);
  }

  redraw(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    this.#o.frame(() => {
      this.#drawing = false;
      for (const draw of this.#drawers) draw();
    });
  }

  originOf(entry: Pick<Entry, 'source' | 'sourceId' | 'type'>): Origin {
    const key = `${entry.sourceId}\n${entry.source}\n${entry.type.startsWith('midi.')}`;
    let origin = this.#origins.get(key);
    if (origin) return origin;
    origin = originOf(entry, this.#known.peek());
    if (this.#origins.size >= mostMeters) this.#origins.clear();
    this.#origins.set(key, origin);
    if (this.#byKey.size >= mostMeters) this.#byKey.clear();
    this.#byKey.set(origin.key, origin);
    return origin;
  }

  /** The same, of whose key is known. */
  originByKey(key: string): Origin {
    return this.#byKey.get(key) ?? { key, name: key, identity: 'posted' };
  }

  /** What is kept and belongs together, as it was a moment ago. */
  episode(correlation: string): readonly Entry[] {
    const now = this.now();
    if (this.#episode.correlation !== correlation || now - this.#episode.at > betweenCounts) {
      this.#episode = { correlation, at: now, entries: this.timeline.episode(correlation) };
    }
    return this.#episode.entries;
  }

  /** The row that somebody looks at. */
  get selected(): ReadonlySignal<Row | null> {
    return this.#selected;
  }

  get filter(): ReadonlySignal<Filter> {
    return this.#filter;
  }

  select(row: Row | null): void {
    this.timeline.select(row);
    this.recount();
  }

  setFilter(change: Partial<Filter>): void {
    this.timeline.setFilter(change);
    this.recount();
  }

  pause(): void {
    this.timeline.stand('paused');
    this.recount();
  }

  /** Goes on with the newest. */
  follow(): void {
    this.timeline.follow();
    this.recount();
  }

  /** Signals a second of a type, and of that origin alone where one is given. */
  rateOf(type: string, origin = ''): number {
    return this.#ofType.get(`${origin}\n${type}`)?.rate(this.now()) ?? 0;
  }

  /** The origins that a signal of this type came from lately. */
  originsOf(type: string): string[] {
    const end = `\n${type}`;
    const now = this.now();
    return [...this.#ofType].filter(([key, meter]) => !key.startsWith('\n') && key.endsWith(end) && meter.rate(now) > 0).map(([key]) => key.slice(0, -end.length));
  }

  /** The types that came lately. */
  types(): string[] {
    const now = this.now();
    return [...this.#ofType].filter(([key, meter]) => key.startsWith('\n') && meter.rate(now) > 0).map(([key]) => key.slice(1));
  }

  /** Signals of an origin in each of the last seconds, and how many a second. */
  pulse(origin: string): { rate: number; history: number[] } {
    const meter = this.#ofOrigin.get(origin);
    return { rate: meter?.rate(this.now()) ?? 0, history: meter?.history(this.now()) ?? [] };
  }

  /**
   * Asks something of the gateway, and takes the source that it answers with: the stream says the same a moment later. Where the stream has spoken
   * meanwhile the answer may be older than that, and is left.
   */
  async act(asked: Promise<Answer>): Promise<string> {
    const before = this.#lists;
    const answer = await asked;
    if (!answer.ok) return answer.words;
    if (this.#lists !== before) return '';
    const source = readSource(answer.value);
    const all = readSources(answer.value);
    if (all) this.#setSources(all);
    else if (source) this.#setSources([...new Map(this.#known.peek()).set(source.id, source).values()]);
    return '';
  }

  #take(events: readonly ServerSent[]): void {
    const now = this.now();
    for (const { data, missed } of events) {
      if (missed > 0) this.#missed.value += missed;
      const read = readSignal(data);
      if (!read) continue;
      const entry = this.timeline.add(entryOf(read, data));
      const { key } = this.originOf(entry);
      this.sky.add(key, entry.at, entry.kind === 'errors', now);
      // What is kept from before came then, and is no part of the rate.
      if (now - entry.at > 10_000) continue;
      this.#meter.count(now);
      this.#ofKind.get(entry.kind)!.count(now);
      bounded(this.#ofType, `\n${entry.type}`).count(now);
      bounded(this.#ofType, `${key}\n${entry.type}`).count(now);
      bounded(this.#ofOrigin, key).count(now);
    }
    // The first ones are told at once: a list with rows must not be called empty until the next count.
    if (this.#counts.peek().rows === 0) this.recount();
    else this.redraw();
  }

  #list(events: readonly ServerSent[]): void {
    const last = events.at(-1);
    let value: unknown;
    try {
      value = JSON.parse(last?.data ?? '');
    } catch {
      return;
    }
    const sources = readSources(value);
    if (!sources) return;
    this.#lists++;
    this.#setSources(sources);
  }

  #setSources(sources: readonly Source[]): void {
    this.#known.value = new Map(sources.map((s) => [s.id, s]));
    this.#listed.value = true;
    this.#origins.clear();
    this.#connectByItself();
    this.redraw();
  }

  /** Claude Code is connected as soon as it is found, where the user has agreed to its hooks once. */
  #connectByItself(): void {
    const found = this.#known.peek().get(claudeCode);
    if (this.#asked || found?.state !== 'disconnected' || this.consent.state.peek() !== 'always') return;
    this.#asked = true;
    void this.act(this.sources.connect(claudeCode));
  }

  #count(): void {
    const now = this.now();
    const ofKind = Object.fromEntries(kinds.map((k) => [k, this.#ofKind.get(k)!.rate(now)])) as Record<Kind, number>;
    this.#counts.value = { ...this.#counts.peek(), perSecond: this.#meter.rate(now), ofKind };
    this.#counting = this.#o.timers.set(() => this.#count(), betweenCounts);
    this.recount();
  }

  /** Shows at once what somebody just changed. */
  recount(): void {
    const { kept, length, newer, hold, selected, filter } = this.timeline;
    this.#counts.value = { ...this.#counts.peek(), kept, rows: length, newer, hold };
    this.#selected.value = selected;
    this.#filter.value = filter;
    this.redraw();
  }
}

/** The meter of that name; where there are too many, the one that is there the longest goes. */
function bounded(meters: Map<string, Meter>, name: string): Meter {
  let meter = meters.get(name);
  if (meter) return meter;
  if (meters.size >= mostMeters) meters.delete(meters.keys().next().value!);
  meters.set(name, (meter = new Meter()));
  return meter;
}

function noRates(): Record<Kind, number> {
  return Object.fromEntries(kinds.map((k) => [k, 0])) as Record<Kind, number>;
}
