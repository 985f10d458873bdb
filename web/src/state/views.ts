/** What can be shown. */
export type ViewName = 'talk' | 'signals' | 'wiring';

/** The view that an address names behind its #; the talk view where it names none. */
export function viewIn(hash: string): ViewName {
  return hash === '#signals' || hash === '#wiring' ? (hash.slice(1) as ViewName) : 'talk';
}
