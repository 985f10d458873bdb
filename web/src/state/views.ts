/** What can be shown. */
export type ViewName = 'talk' | 'signals' | 'wiring';

/** The view that an address names behind its #, where there is something to be seen in it; the talk view otherwise. */
export function viewIn(hash: string, there: readonly ViewName[]): ViewName {
  const asked = hash.slice(1) as ViewName;
  return there.includes(asked) ? asked : 'talk';
}
