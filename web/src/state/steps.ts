import type { ToolCallPayload, ToolResultPayload } from '@vela/protocol';
import { oneLine, plain } from './plain';

/** One use of a tool. */
export interface Step {
  id: string;
  name: string;
  /** What of its input says most. */
  detail: string;
  state: 'running' | 'done' | 'failed' | 'unknown';
  began: number;
  /** How long it took, in ms of one clock; null while it runs, and where nobody knows. */
  took: number | null;
  /** What went in and what came out, for who wants to see all of it. */
  input: string;
  output: string;
}

export const stepWords: Record<Step['state'], string> = { running: 'running', done: 'done', failed: 'failed', unknown: 'not finished' };

const telling = ['path', 'file_path', 'pattern', 'query', 'command'];

/** How much of an input or an output is kept, in characters: more than anybody reads in a box of this height. */
const mostEvidence = 20_000;

/** The one thing of a tool's input that says most; '' where there is none. */
export function detailOf(input: Record<string, unknown>): string {
  const value = telling.map((key) => input[key]).find((v) => (typeof v === 'string' && v !== '') || typeof v === 'number');
  return value === undefined ? '' : oneLine(String(value));
}

/** An object as lines, one or more for each of its fields: texts as they are, all else as JSON. */
export function evidence(fields: Record<string, unknown> | undefined): string {
  const entries = Object.entries(fields ?? {});
  const only = entries.length === 1 && entries[0]![0] === 'content' && typeof entries[0]![1] === 'string';
  const text = only ? String(entries[0]![1]) : entries.map(([name, value]) => field(name, value)).join('\n');
  const left = text.length - mostEvidence;
  return plain(left > 0 ? text.slice(0, mostEvidence) : text) + (left > 0 ? `\n… and ${left.toLocaleString('en')} more characters` : '');
}

function field(name: string, value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '');
  return text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`;
}

export function called({ callId, name, input }: ToolCallPayload, at: number): Step {
  return { id: callId, name: oneLine(name, 80), detail: detailOf(input), state: 'running', began: at, took: null, input: evidence(input), output: '' };
}

export function returned(step: Step, { callId, success, output }: ToolResultPayload, at: number): Step {
  if (step.id !== callId || step.state !== 'running') return step;
  return { ...step, state: success ? 'done' : 'failed', took: Math.max(0, at - step.began), output: evidence(output) };
}

/** A step whose result did not come before the answer ended. */
export function abandoned(step: Step): Step {
  return step.state === 'running' ? { ...step, state: 'unknown' } : step;
}
