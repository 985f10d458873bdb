import type { Binding, Choreography, Filter, Passing, Run, Wire, Wiring } from '../client/run';

/** One way through the wiring: from signals of a type, through filters, to a choreography. */
export interface Way {
  /** Its wire's id; the choreography's, behind "own:", where it is reached by the type that it names itself. */
  id: string;
  type: string;
  filters: readonly Filter[];
  to: string;
  /** The sources whose signals of the type count; null where all of them do. */
  from: readonly Feeder[] | null;
  /** How often signals came to it and passed, and so for each of its filters; null while run mode is off. */
  count: (Passing & { filters: readonly Passing[] }) | null;
}

/** A source that is wired to a type. */
export interface Feeder {
  source: string;
  /** How many of its signals of that type came; null while run mode is off. */
  came: number | null;
}

/** What is reached: a choreography with what hangs on it. */
export interface Goal {
  id: string;
  choreography: Choreography | null;
  bindings: readonly Binding[];
  /** Where wires lead on to: themes, shaders, sketches. */
  onward: readonly string[];
  /** How often signals came to it, and how often it was performed; null while run mode is off. */
  count: { seen: number; performed: number } | null;
  ways: readonly Way[];
}

/** The wiring as it is drawn: types lead by ways to goals. */
export interface Board {
  types: readonly string[];
  ways: readonly Way[];
  goals: readonly Goal[];
}

const between = (w: Wire, from: string, to: string): boolean => w.fromZone === from && w.toZone === to;

/** Works out what leads where. A choreography that no wire leads to is reached by its own type. */
export function boardOf(wiring: Wiring, run: Run | null): Board {
  const { wires, choreographies, bindings } = wiring;
  const feeding = new Map<string, Feeder[]>();
  for (const w of wires) {
    if (!between(w, 'signal', 'signal-type')) continue;
    feeding.set(w.toId, [...(feeding.get(w.toId) ?? []), { source: w.fromId, came: run?.wires.get(w.id)?.passed ?? null }]);
  }
  const goals = choreographies.map((c): Goal => {
    const leading = wires.filter((w) => between(w, 'signal-type', 'choreographer') && w.toId === c.id);
    const count = run?.choreographies.get(c.id) ?? null;
    const wayOf = (id: string, type: string, filters: readonly Filter[], counted: Way['count']): Way => ({ id, type, filters, to: c.id, from: feeding.get(type) ?? null, count: counted });
    const own = count && { seen: count.seen, passed: count.seen, filters: [] };
    return {
      id: c.id,
      choreography: c,
      bindings: bindings.filter((b) => b.choreography === c.id),
      onward: wires.filter((w) => w.fromZone === 'choreographer' && w.fromId === c.id).map((w) => `${w.toZone} ${w.toId}`),
      ways: leading.length > 0 ? leading.map((w) => wayOf(w.id, w.fromId, w.filters, run?.wires.get(w.id) ?? null)) : [wayOf(`own:${c.id}`, c.on, [], own)],
      count,
    };
  });
  const ways = goals.flatMap((g) => g.ways);
  return { types: [...new Set([...ways.map((w) => w.type), ...feeding.keys()])], ways, goals };
}

/** How many came and how many passed, in a few words; none where nobody counts. */
export function passingWords(count: Passing | null | undefined): string {
  return count ? `${count.seen.toLocaleString('en')} to ${count.passed.toLocaleString('en')}` : '';
}

/** A filter in a few words. */
export function filterWords(filter: Filter): string {
  const { type } = filter;
  const value = (name: string): string => String(filter[name] ?? '');
  switch (type) {
    case 'throttle':
      return `one in ${value('intervalMs')} ms`;
    case 'sample':
      return `one of ${value('every')}`;
    case 'delta':
      return `${value('path')} moved by ${value('threshold')}`;
    case 'when':
      return clauseWords(filter.clause);
    case 'map':
      return (Array.isArray(filter.mappings) ? filter.mappings : [])
        .map((m: { from?: unknown; to?: unknown } | null) => `${String(m?.from ?? '')} → ${String(m?.to ?? '')}`)
        .join(', ');
  }
  return '';
}

/** A line of what is drawn of a chain. */
export interface Link {
  words: string;
  count: Passing | null;
}

/** A chain in so many lines at most: the first filters, and in the last line how many more there are. */
export function linksOf({ filters, count }: Pick<Way, 'filters' | 'count'>, most: number): Link[] {
  const links = filters.map((filter, i): Link => ({ words: `${filter.type} ${filterWords(filter)}`, count: count?.filters[i] ?? null }));
  if (links.length <= most) return links;
  const rest = links.splice(most - 1);
  const [first, last] = [rest[0]!.count, rest.at(-1)!.count];
  return [...links, { words: `${rest.length} more filters`, count: first && last && { seen: first.seen, passed: last.passed } }];
}

const signs: Record<string, string> = { equals: '=', gt: '>', lt: '<', contains: 'contains', matches: 'matches', exists: 'exists' };

/** All entries of an object hold, of several objects one. */
export function clauseWords(clause: unknown): string {
  if (Array.isArray(clause)) return clause.map(clauseWords).join(' or ');
  if (typeof clause !== 'object' || clause === null) return '';
  return Object.entries(clause)
    .flatMap(([path, operators]) => operatorWords(path.replace(/^signal\./, ''), operators))
    .join(' and ');
}

function operatorWords(path: string, operators: unknown): string[] {
  if (typeof operators !== 'object' || operators === null) return [];
  const { not } = operators as Record<string, unknown>;
  if (not !== undefined) return operatorWords(path, not).map((words) => `not ${words}`);
  return Object.entries(operators).map(([name, value]) => `${path} ${signs[name] ?? name} ${JSON.stringify(value)}`);
}

/** How thick a line is, in px, that carries so many signals a second. */
export function thickness(rate: number): number {
  return Math.min(7, 1 + 1.6 * Math.log10(1 + 4 * rate));
}
