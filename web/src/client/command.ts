import { isObject } from './decode';

/** What comes out of a run, as the gateway tells it. */
export type Command =
  | { command: 'dispatch'; performance: number; choreography: string; type: string; signalType: string; payload: unknown; steps: number }
  | { command: 'interrupt'; correlation: string; performances: readonly number[] }
  | { command: 'assignment'; entity: string; property: string; value: unknown; append: boolean; transition: { from: number; durationMs: number } | null }
  | { command: 'started' }
  | { command: 'stopped'; entities: number };

const words = (word: unknown): string => (typeof word === 'string' ? word : '');
const number = (n: unknown): number => (typeof n === 'number' ? n : 0);

/** Reads a command; null for what is none, or one of a later gateway. */
export function readCommand(text: string): Command | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value)) return null;
  const { command } = value;
  switch (command) {
    case 'dispatch':
      return {
        command,
        performance: number(value.performance),
        choreography: words(value.choreography),
        type: words(value.type),
        signalType: words(value.signalType),
        payload: value.payload,
        steps: Array.isArray(value.steps) ? value.steps.length : 0,
      };
    case 'interrupt':
      return { command, correlation: words(value.correlationId), performances: Array.isArray(value.performances) ? value.performances.map(number) : [] };
    case 'assignment': {
      const { transition } = value;
      return {
        command,
        entity: words(value.entity),
        property: words(value.property),
        value: value.value,
        append: value.append === true,
        transition: isObject(transition) ? { from: number(transition.from), durationMs: number(transition.durationMs) } : null,
      };
    }
    case 'started':
      return { command };
    case 'stopped':
      return { command, entities: Array.isArray(value.entities) ? value.entities.length : 0 };
  }
  return null;
}
