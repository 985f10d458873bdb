import { signal, type ReadonlySignal } from '@preact/signals';
import { readCommand, type Command } from '../client/command';
import { EventStream, type EventStreamOptions, type Following, type ServerSent } from '../client/events';
import { commandStream } from '../client/run';
import { oneLine } from './plain';

/** One line of what came out of a run. */
export interface Said {
  /** Counts up, over all that came. */
  number: number;
  /** When it came here, in ms. */
  at: number;
  name: Command['command'];
  /** What it is about: a choreography, an entity's property, an episode. */
  about: string;
  words: string;
}

/** What is shown of what came out, as it was a moment ago. */
export interface Shown {
  /** The newest first. */
  lines: readonly Said[];
  dispatches: number;
  interrupts: number;
  assignments: number;
  following: Following;
  paused: boolean;
}

/** So many lines are kept. */
const mostLines = 50;

/** How often what is shown changes at most, in ms: faster nobody can read. */
const betweenDraws = 250;

/** Follows what comes out of a run, and keeps the last of it. While it is paused, what is shown stays as it is, and what comes is counted all the same. */
export class Outcome {
  #stream: EventStream;
  #timers: EventStreamOptions['timers'];
  #timer: unknown = null;
  #lines: Said[] = [];
  #number = 0;
  #counts = { dispatches: 0, interrupts: 0, assignments: 0 };
  #following: Following = { state: 'off' };
  #paused = false;
  #shown = signal<Shown>({ lines: [], ...this.#counts, following: this.#following, paused: false });

  constructor(options: Pick<EventStreamOptions, 'token' | 'timers' | 'fetch'>) {
    this.#timers = options.timers;
    this.#stream = new EventStream({
      ...options,
      url: commandStream,
      onEvents: (events) => this.#take(events),
      onState: (state) => {
        this.#following = state;
        this.#draw();
      },
    });
  }

  get shown(): ReadonlySignal<Shown> {
    return this.#shown;
  }

  start(): void {
    this.#stream.start();
  }

  /** What came stays. */
  stop(): void {
    this.#timers.clear(this.#timer);
    this.#timer = null;
    this.#stream.stop();
  }

  pause(paused: boolean): void {
    this.#paused = paused;
    this.#draw();
  }

  #take(events: readonly ServerSent[]): void {
    const at = this.#timers.now();
    for (const { data } of events) {
      const command = readCommand(data);
      if (!command) continue;
      this.#count(command);
      this.#lines.push({ number: ++this.#number, at, name: command.command, ...wordsOf(command) });
    }
    if (this.#lines.length > mostLines) this.#lines = this.#lines.slice(-mostLines);
    this.#timer ??= this.#timers.set(() => {
      this.#timer = null;
      this.#draw();
    }, betweenDraws);
  }

  /** Each run begins at 0, as the gateway's own counts do. */
  #count({ command }: Command): void {
    if (command === 'started') this.#counts = { dispatches: 0, interrupts: 0, assignments: 0 };
    if (command === 'dispatch') this.#counts.dispatches++;
    if (command === 'interrupt') this.#counts.interrupts++;
    if (command === 'assignment') this.#counts.assignments++;
  }

  #draw(): void {
    const lines = this.#paused ? this.#shown.peek().lines : this.#lines.toReversed();
    this.#shown.value = { lines, ...this.#counts, following: this.#following, paused: this.#paused };
  }
}

/** A command in a few words. */
export function wordsOf(command: Command): Pick<Said, 'about' | 'words'> {
  switch (command.command) {
    case 'dispatch': {
      const { choreography, type, signalType, steps, payload } = command;
      const as = type === signalType ? '' : ` as ${type}`;
      return { about: oneLine(choreography), words: oneLine(`for ${signalType}${as}, ${steps === 1 ? '1 step' : `${steps} steps`} ${JSON.stringify(payload) ?? ''}`) };
    }
    case 'interrupt': {
      const n = command.performances.length;
      return { about: oneLine(command.correlation), words: `${n} ${n === 1 ? 'performance ends' : 'performances end'}` };
    }
    case 'assignment': {
      const { entity, property, value, append, transition } = command;
      const how = transition ? ` from ${Math.round(transition.from * 1000) / 1000} in ${transition.durationMs} ms` : append ? ', appended' : '';
      return { about: oneLine(`${entity}.${property}`), words: oneLine(`${JSON.stringify(value) ?? ''}${how}`) };
    }
    case 'started':
      return { about: '', words: 'Run mode begins.' };
    case 'stopped':
      return { about: '', words: `Run mode is over, ${command.entities === 1 ? '1 entity is' : `${command.entities} entities are`} as before.` };
  }
}
