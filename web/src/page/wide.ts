import { signal, type ReadonlySignal } from '@preact/signals';

/** Follows a query of the window; `otherwise` is the answer where nobody can ask. */
function watch(media: string, otherwise: boolean): ReadonlySignal<boolean> {
  const query = typeof matchMedia === 'function' ? matchMedia(media) : null;
  const matches = signal(query?.matches ?? otherwise);
  query?.addEventListener('change', (event) => (matches.value = event.matches));
  return matches;
}

/** Whether artifacts have their place beside the conversation. Where they have not, they come over it, as a sheet. */
export const wide = watch('(min-width: 1101px)', true);

/** Whether it is one screen for one thumb. */
export const narrow = watch('(max-width: 720px)', false);
