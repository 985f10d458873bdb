/** Something that is kept as long as there is room for it. */
export interface Kept {
  /** How much room it takes, in characters. */
  readonly chars: number;
}

/**
 * The last things that came, in order, in an array that is made once. Each has a number, from 0 on. The oldest goes where there would be more
 * than `capacity`, or more than `mostChars` characters of them.
 */
export class Ring<T extends Kept> {
  readonly capacity: number;
  #slots: (T | undefined)[];
  #mostChars: number;
  #chars = 0;
  #first = 0;
  #end = 0;

  constructor(capacity: number, mostChars: number) {
    this.capacity = capacity;
    this.#slots = new Array<T | undefined>(capacity).fill(undefined);
    this.#mostChars = mostChars;
  }

  /** The number of the oldest one that is kept. */
  get first(): number {
    return this.#first;
  }

  /** The number that the next one will have. */
  get end(): number {
    return this.#end;
  }

  get length(): number {
    return this.#end - this.#first;
  }

  /** Keeps one more, and returns its number. */
  push(item: T): number {
    if (this.length === this.capacity) this.#drop();
    this.#slots[this.#end % this.capacity] = item;
    this.#chars += item.chars;
    this.#end++;
    while (this.#chars > this.#mostChars && this.length > 1) this.#drop();
    return this.#end - 1;
  }

  /** The one of that number; undefined where it is not kept any more, or not there yet. */
  at(number: number): T | undefined {
    return number >= this.#first && number < this.#end ? this.#slots[number % this.capacity] : undefined;
  }

  #drop(): void {
    const slot = this.#first % this.capacity;
    this.#chars -= this.#slots[slot]!.chars;
    this.#slots[slot] = undefined;
    this.#first++;
  }
}
