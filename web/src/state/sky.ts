/** How far the sky reaches back, in ms. */
export const spans = [12_000, 60_000, 600_000] as const;

export type Span = (typeof spans)[number];

/** How many columns a span has. */
export const columns = 300;

/** More origins than this share a lane. */
const mostLanes = 32;

/** Takes what a lane has in one column: when it began, in ms of the clock, how many signals, and whether an error is among them. */
type TakeColumn = (at: number, count: number, failed: boolean) => void;

class Strip {
  #width: number;
  #stamps = new Float64Array(columns);
  #counts = new Uint16Array(columns);
  #failed = new Uint8Array(columns);

  constructor(span: Span) {
    this.#width = span / columns;
  }

  add(at: number, failed: boolean): void {
    const bucket = Math.floor(at / this.#width);
    const i = bucket % columns;
    if (this.#stamps[i]! > bucket) return; // too long ago
    if (this.#stamps[i] !== bucket) {
      this.#stamps[i] = bucket;
      this.#counts[i] = 0;
      this.#failed[i] = 0;
    }
    if (this.#counts[i]! < 65_535) this.#counts[i]!++;
    if (failed) this.#failed[i] = 1;
  }

  each(now: number, take: TakeColumn): void {
    const newest = Math.floor(now / this.#width);
    for (let i = 0; i < columns; i++) {
      const bucket = this.#stamps[i]!;
      if (this.#counts[i]! > 0 && bucket <= newest && newest - bucket < columns) take(bucket * this.#width, this.#counts[i]!, this.#failed[i] === 1);
    }
  }
}

/** Where signals of one origin stand in time. */
export class Lane {
  readonly key: string;
  /** When something came last, in ms of the clock. */
  last = 0;
  #strips = new Map<Span, Strip>(spans.map((s) => [s, new Strip(s)]));

  constructor(key: string) {
    this.key = key;
  }

  add(at: number, failed: boolean): void {
    this.last = Math.max(this.last, at);
    for (const strip of this.#strips.values()) strip.add(at, failed);
  }

  /** Each column of the span that ends now, as far as it has something in it. */
  each(span: Span, now: number, take: TakeColumn): void {
    this.#strips.get(span)!.each(now, take);
  }
}

/** The last ten minutes of every origin, in a memory that does not grow with what comes. */
export class Sky {
  #lanes = new Map<string, Lane>();

  /** Takes a signal of that time; none is later than now, in ms of the clock. */
  add(key: string, at: number, failed: boolean, now: number): void {
    this.#lane(key, now).add(Math.min(at, now), failed);
  }

  /** The lanes that have something in the last ten minutes, in the order in which they came. */
  lanes(now: number): Lane[] {
    return [...this.#lanes.values()].filter((lane) => now - lane.last <= spans[2]);
  }

  #lane(key: string, now: number): Lane {
    let lane = this.#lanes.get(key);
    if (lane) return lane;
    if (this.#lanes.size >= mostLanes) {
      for (const [k, { last }] of this.#lanes) if (now - last > spans[2]) this.#lanes.delete(k);
    }
    if (this.#lanes.size >= mostLanes) return this.#lanes.get(others) ?? this.#add(others);
    lane = this.#add(key);
    return lane;
  }

  #add(key: string): Lane {
    const lane = new Lane(key);
    this.#lanes.set(key, lane);
    return lane;
  }
}

/** The lane of those that have none of their own. */
export const others = 'others';
