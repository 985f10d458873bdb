import { signal, type ReadonlySignal } from '@preact/signals';

const query = typeof matchMedia === 'function' ? matchMedia('(min-width: 1101px)') : null;
const matches = signal(query?.matches ?? true);
query?.addEventListener('change', (event) => (matches.value = event.matches));

/** Whether artifacts have their place beside the conversation. Where they have not, they come over it, as a sheet. */
export const wide: ReadonlySignal<boolean> = matches;
