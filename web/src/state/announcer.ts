import { signal, type ReadonlySignal } from '@preact/signals';

export interface Announcement {
  id: number;
  text: string;
}

/** What a screen reader is told, in its order. What there is to tell says announce.ts. */
export class Announcer {
  readonly #told = signal<readonly Announcement[]>([]);
  #count = 0;

  /** The last ones, newest last. */
  get told(): ReadonlySignal<readonly Announcement[]> {
    return this.#told;
  }

  tell(texts: readonly string[]): void {
    if (texts.length === 0) return;
    const said = texts.map((text) => ({ id: ++this.#count, text }));
    // A few stay, since a screen reader may not have come to the one before.
    this.#told.value = [...this.#told.value, ...said].slice(-5);
  }
}
