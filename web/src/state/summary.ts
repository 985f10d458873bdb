import { isObject } from '../client/decode';
import { oneLine, plain } from './plain';

type Payload = Record<string, unknown>;

/** What says most of a tool's input, in this order. */
const telling = ['path', 'file_path', 'filePath', 'command', 'pattern', 'query', 'url', 'description', 'prompt'];

/** What a signal says, in one line. Nothing of it is more than words: what is whole is in its detail. */
export function summary(type: string, payload: Payload): string {
  // A piece of a text keeps its blanks, since the next one may go on where it ends.
  if (type === 'text_delta' || type === 'thinking') return plain(words(payload.content).slice(0, 200).replace(/\s+/g, ' '));
  return oneLine(Object.hasOwn(lines, type) ? lines[type]!(payload) : type.startsWith('midi.') ? midi(payload) : fields(payload));
}

const lines: Record<string, (p: Payload) => string> = {
  task_dispatch: (p) => `${words(p.from)} to ${words(p.to)}${after(': ', p.description)}`,
  tool_call: (p) => `${words(p.toolName)} ${telltale(p.input)}`,
  tool_result: (p) => `${words(p.toolName)}${p.success === false ? ', failed' : ''}${after(', ', outcome(p.output))}`,
  token_usage: (p) => `${number(p.promptTokens)} in, ${number(p.completionTokens)} out${after(', ', p.model)}`,
  agent_state_change: (p) => `${words(p.from)} to ${words(p.to)}${after(', ', p.reason)}`,
  error: (p) => `${words(p.message)}${after(' (', p.code, ')')}`,
  completion: (p) => `${p.success === false ? 'not done' : 'done'}${after(', ', p.result)}`,
  'user.click': (p) => words(p.target),
  'user.move': (p) => `${words(p.entityId)} to ${words(p.toSlot)}${after(' in ', p.toZone)}`,
  'user.zone': (p) => words(p.intent) || fields(p),
  'user.command': (p) => `${words(p.action)} ${words(p.entityId)}`,
  'user.point': (p) => `${fields(isObject(p.position) ? p.position : {})}${after(' in ', p.zone)}`,
};

function midi(p: Payload): string {
  const { raw: _, ...rest } = p;
  return fields(rest);
}

/** The first fields of an object that are plain values, each with its name. */
function fields(object: Payload): string {
  const plain = Object.entries(object).filter(([, v]) => typeof v === 'string' || typeof v === 'number' || typeof v === 'boolean');
  return plain
    .slice(0, 4)
    .map(([name, v]) => `${name} ${words(v)}`)
    .join(', ');
}

function telltale(input: unknown): string {
  if (!isObject(input)) return '';
  const name = telling.find((n) => typeof input[n] === 'string');
  return name ? words(input[name]) : fields(input);
}

function outcome(output: unknown): string {
  if (typeof output === 'string') return output;
  if (!isObject(output)) return '';
  const { response } = output;
  return typeof response === 'string' ? response : fields(isObject(response) ? response : output);
}

function words(value: unknown): string {
  // No more of a long text than a line can show.
  return typeof value === 'string' ? value.slice(0, 1000) : typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

function number(value: unknown): string {
  return typeof value === 'number' ? value.toLocaleString('en') : '0';
}

/** A value behind what joins it, or nothing where there is none. */
function after(joint: string, value: unknown, end = ''): string {
  const said = words(value);
  return said === '' ? '' : joint + said + end;
}
