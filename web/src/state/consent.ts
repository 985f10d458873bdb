import { signal, type ReadonlySignal } from '@preact/signals';

/**
 * Whether Claude Code may be connected, which writes hooks into the settings of a project: nobody has been asked; it may, and by itself; it may
 * when somebody says so; it may not.
 */
export type ConsentState = 'unasked' | 'always' | 'by hand' | 'no';

const key = 'vela.hooks';

/** Remembers in the browser what the user answered. */
export class Consent {
  #store: Pick<Storage, 'getItem' | 'setItem'> | null;
  #state = signal<ConsentState>('unasked');

  constructor(store: Pick<Storage, 'getItem' | 'setItem'> | null) {
    this.#store = store;
    try {
      const kept = store?.getItem(key);
      if (kept === 'always' || kept === 'by hand' || kept === 'no') this.#state.value = kept;
    } catch {
      // Storage may be closed to the page: then it is asked again.
    }
  }

  get state(): ReadonlySignal<ConsentState> {
    return this.#state;
  }

  set(state: ConsentState): void {
    this.#state.value = state;
    try {
      this.#store?.setItem(key, state);
    } catch {
      // It holds until the page is closed.
    }
  }
}
