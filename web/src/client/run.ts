import { ask, type Answer, type Asker } from './ask';
import { isObject } from './decode';

/** Wiring, as /schema/wiring.json says, as far as it is drawn. */
export interface Wiring {
  wires: readonly Wire[];
  choreographies: readonly Choreography[];
  bindings: readonly Binding[];
}

/** Where signals lead to: from a source or a type to a type or a choreography, each named by its zone and id, through the filters in their order. */
export interface Wire {
  id: string;
  fromZone: string;
  fromId: string;
  toZone: string;
  toId: string;
  filters: readonly Filter[];
}

/** One filter of a chain. Its other fields go by its type. */
export type Filter = { type: string } & Record<string, unknown>;

/** What is performed when a signal of the type `on` comes. */
export interface Choreography {
  id: string;
  on: string;
  interrupts: boolean;
  steps: number;
  when: unknown;
}

/** What signals make of a property of an entity on the stage. */
export interface Binding {
  id: string;
  entity: string;
  property: string;
  choreography: string;
}

/** How often signals came, and how often they passed. */
export interface Passing {
  seen: number;
  passed: number;
}

/** How the run goes. */
export interface Run {
  running: boolean;
  /** Signals that reached something. */
  count: number;
  /** Signals that came faster than they were taken. */
  dropped: number;
  /** By the wire's id, with the filters of its chain in their order. Empty while run mode is off. */
  wires: ReadonlyMap<string, Passing & { filters: readonly Passing[] }>;
  /** How often signals came to a choreography, and how often it was performed; by its id. Empty while run mode is off. */
  choreographies: ReadonlyMap<string, { seen: number; performed: number }>;
  /** Since when what is wired is in force, in Unix ms; 0 where nobody says. */
  since: number;
  /** What is wrong with the wiring that the file has now and that is not in force; none where nothing is. */
  mistakes: readonly string[];
}

const most = 4096;
const words = (word: unknown): string => (typeof word === 'string' ? word : '');
const count = (n: unknown): number => (typeof n === 'number' && n >= 0 ? n : 0);
const objects = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.slice(0, most).filter(isObject) : []);

function passingOf(value: Record<string, unknown>): Passing {
  return { seen: count(value.seen), passed: count(value.passed) };
}

/** Reads a wiring; null for what is none. */
export function readWiring(value: unknown): Wiring | null {
  if (!isObject(value)) return null;
  return {
    wires: objects(value.wires).map((w) => ({
      id: words(w.id),
      fromZone: words(w.fromZone),
      fromId: words(w.fromId),
      toZone: words(w.toZone),
      toId: words(w.toId),
      filters: objects(w.filters).map((f) => ({ ...f, type: words(f.type) })),
    })),
    choreographies: objects(value.choreographies).map((c) => ({
      id: words(c.id),
      on: words(c.on),
      interrupts: c.interrupts === true,
      steps: Array.isArray(c.steps) ? c.steps.length : 0,
      when: c.when,
    })),
    bindings: objects(value.bindings).map((b) => ({
      id: words(b.id),
      entity: words(b.targetEntityId),
      property: words(b.property),
      choreography: words(b.sourceChoreographyId),
    })),
  };
}

/** Reads how the run goes; null when it is not that. */
export function readRun(value: unknown): Run | null {
  if (!isObject(value) || typeof value.running !== 'boolean') return null;
  return {
    running: value.running,
    count: count(value.count),
    dropped: count(value.dropped),
    wires: new Map(objects(value.wires).map((w) => [words(w.id), { ...passingOf(w), filters: objects(w.filters).map(passingOf) }])),
    choreographies: new Map(objects(value.choreographies).map((c) => [words(c.id), { seen: count(c.seen), performed: count(c.performed) }])),
    since: count(value.since),
    mistakes: Array.isArray(value.mistakes) ? value.mistakes.filter((m) => typeof m === 'string').slice(0, 100) : [],
  };
}

/** The wiring in force, for readWiring(). */
export function askWiring(asker: Asker): Promise<Answer> {
  return ask(asker, '/api/wiring');
}

/** How the run goes, for readRun(). */
export function askRun(asker: Asker): Promise<Answer> {
  return ask(asker, '/api/run');
}

/** Where what comes out of a run is told. */
export const commandStream = '/__commands__/stream';

/** Starts or stops the run; answers as askRun(). */
export function switchRun(asker: Asker, running: boolean): Promise<Answer> {
  return ask(asker, '/api/run', { method: 'POST', body: { running } });
}
