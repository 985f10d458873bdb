import type { ArtifactPayload } from '@vela/protocol';
import { oneLine } from './plain';

/** One place that a search found. */
export interface Found {
  file: string;
  /** 0 where it is a file as a whole. */
  line: number;
  content: string;
}

/** What there is to see, by its kind. */
export type ArtifactBody =
  | { kind: 'diff'; file: string; diff: string }
  | { kind: 'code'; content: string; language: string; file: string; startLine: number }
  | { kind: 'markdown'; content: string; path: string }
  | { kind: 'file'; path: string; content: string; language: string }
  | { kind: 'search_results'; query: string; results: readonly Found[] }
  | { kind: 'error'; message: string };

/** Something to look at that came of a tool. */
export interface Artifact {
  id: number;
  title: string;
  /** ms of the clock. */
  at: number;
  /** Who made it, by name. */
  agent: string;
  body: ArtifactBody;
}

/** How many are there to look at; older ones go. */
export const keptArtifacts = 10;

const mostFound = 5000;

/** Reads what an artifact holds; null for one that this page cannot show. */
export function readBody(payload: ArtifactPayload): ArtifactBody | null {
  // What came over the wire is looked at field by field: its type is a promise.
  const fields = payload as unknown as Record<string, unknown>;
  const word = (name: string): string => (typeof fields[name] === 'string' ? (fields[name] as string) : '');
  const has = (name: string): boolean => typeof fields[name] === 'string';
  switch (payload.artifact_type) {
    case 'diff':
      return has('diff') ? { kind: 'diff', file: word('file'), diff: word('diff') } : null;
    case 'code': {
      const { startLine } = fields;
      const first = Number.isSafeInteger(startLine) && (startLine as number) > 0 ? (startLine as number) : 1;
      return has('content') ? { kind: 'code', content: word('content'), language: word('language'), file: word('file'), startLine: first } : null;
    }
    case 'markdown':
      return has('content') ? { kind: 'markdown', content: word('content'), path: word('path') } : null;
    case 'file':
      return has('content') ? { kind: 'file', path: word('path'), content: word('content'), language: word('language') } : null;
    case 'search_results':
      return Array.isArray(fields.results)
        ? { kind: 'search_results', query: word('query'), results: fields.results.slice(0, mostFound).flatMap(found) }
        : null;
    case 'error':
      return has('message') ? { kind: 'error', message: word('message') } : null;
    default:
      return null;
  }
}

function found(value: unknown): Found[] {
  if (typeof value !== 'object' || value === null) return [];
  const { file, line, content } = value as Record<string, unknown>;
  if (typeof file !== 'string') return [];
  return [{ file, line: Number.isSafeInteger(line) ? (line as number) : 0, content: typeof content === 'string' ? content : '' }];
}

const kindWords: Record<ArtifactBody['kind'], string> = {
  diff: 'Edit',
  code: 'Code',
  markdown: 'Text',
  file: 'File',
  search_results: 'Search',
  error: 'Error',
};

/** What it is called: as the gateway says, or by what is in it. */
export function titleOf(title: string | undefined, body: ArtifactBody): string {
  return oneLine(title ?? '', 80) || oneLine(placeOf(body).split(/[/\\]/).at(-1) ?? '', 80) || kindWords[body.kind];
}

/** Where it is from: a path, or what was searched for. */
export function placeOf(body: ArtifactBody): string {
  switch (body.kind) {
    case 'diff':
    case 'code':
      return body.file;
    case 'markdown':
    case 'file':
      return body.path;
    case 'search_results':
      return body.query;
    case 'error':
      return '';
  }
}

/** What is copied of it: all of it, as it came. */
export function wholeText(body: ArtifactBody): string {
  switch (body.kind) {
    case 'diff':
      return body.diff;
    case 'error':
      return body.message;
    case 'search_results':
      return body.results.map(({ file, line, content }) => (line > 0 ? `${file}:${line}:${content}` : file)).join('\n');
    default:
      return body.content;
  }
}
