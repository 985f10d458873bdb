import type { ComponentChildren, JSX } from 'preact';
import { plain } from '../../state/plain';

/** Beyond these, what is shown says that there is more: the whole of it can be copied. */
const mostValues = 1000;
const deepest = 16;
const longestText = 4000;

/** A value as JSON, out of nodes: none of it is ever read as HTML. */
export function Json({ value }: { value: unknown }): JSX.Element {
  const left = { values: mostValues };
  return <pre class="json">{draw(value, 0, left)}</pre>;
}

function draw(value: unknown, depth: number, left: { values: number }): ComponentChildren {
  if (--left.values < 0) return left.values === -1 ? '… and more' : null;
  if (typeof value === 'string') return <b>{quoted(value)}</b>;
  if (typeof value !== 'object' || value === null) return <b>{String(value)}</b>;
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, close] = list ? '[]' : '{}';
  if (entries.length === 0) return `${open}${close}`;
  if (depth >= deepest) return `${open} … ${close}`;
  const indent = '  '.repeat(depth + 1);
  const drawn: ComponentChildren[] = [];
  for (const [i, [name, inner]] of entries.entries()) {
    if (left.values < 0) break;
    drawn.push(`${i > 0 ? ',' : ''}\n${indent}`, list ? '' : `${quoted(name)}: `, draw(inner, depth + 1, left));
  }
  return [open, ...drawn, `\n${'  '.repeat(depth)}${close}`];
}

function quoted(text: string): string {
  return plain(JSON.stringify(text.length > longestText ? `${text.slice(0, longestText)}…` : text));
}
