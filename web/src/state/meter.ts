/** How many seconds a meter remembers. */
export const meterSeconds = 16;

/** Over how many of them a rate is taken. */
const over = 5;

/** Counts what happens by the second, for the last of them. The clock is in ms. */
export class Meter {
  #counts = new Uint32Array(meterSeconds);
  #second = 0;

  count(now: number, times = 1): void {
    this.#go(now);
    this.#counts[this.#second % meterSeconds]! += times;
  }

  /** How many a second there were in the last five whole ones. */
  rate(now: number): number {
    this.#go(now);
    let sum = 0;
    for (let back = 1; back <= over; back++) sum += this.#counts[(this.#second - back + meterSeconds * 2) % meterSeconds]!;
    return sum / over;
  }

  /** Each of the last whole seconds, the oldest first. */
  history(now: number): number[] {
    this.#go(now);
    return Array.from({ length: meterSeconds - 1 }, (_, i) => this.#counts[(this.#second + 1 + i) % meterSeconds]!);
  }

  #go(now: number): void {
    const second = Math.floor(now / 1000);
    if (second <= this.#second) return;
    for (let s = Math.max(this.#second + 1, second - meterSeconds + 1); s <= second; s++) this.#counts[s % meterSeconds] = 0;
    this.#second = second;
  }
}

/** A number of signals a second, in words: whole ones, and below one its tenth. */
export function rateWords(rate: number): string {
  if (rate === 0) return '0';
  return rate < 0.95 ? `${Math.max(0.1, Math.round(rate * 10) / 10)}` : Math.round(rate).toLocaleString('en');
}
