import { signal } from '@preact/signals';

/** A part of the page that is too big to come with the rest. */
export interface Later<T> {
  /** null until it is here; 'none' where it cannot be had, because the gateway is not there. */
  readonly value: T | 'none' | null;
  /** Asks for it, unless it is here or on its way. It may be asked for again where it could not be had. */
  want(): Promise<void>;
}

/** Loads it when it is wanted. Components that read its value are drawn anew when it is here. */
export function later<T>(load: () => Promise<T>): Later<T> {
  const it = signal<T | 'none' | null>(null);
  let coming: Promise<void> | null = null;
  return {
    get value() {
      return it.value;
    },
    want() {
      coming ??= load().then(
        (here) => void (it.value = here),
        () => {
          it.value = 'none';
          coming = null;
        },
      );
      return coming;
    },
  };
}
