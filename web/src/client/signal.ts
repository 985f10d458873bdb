import { isObject } from './decode';

/** A signal, as the gateway writes it (gateway/server, protocol/signal). */
export interface Signal {
  id: string;
  type: string;
  /** Unix time in ms. */
  at: number;
  /** What produced it. */
  source: string;
  /** The source that it came through, by its id among /api/sources; '' where it came through none. */
  sourceId: string;
  /** What belongs together; '' where nothing does. */
  correlation: string;
  payload: Record<string, unknown>;
}

/** Reads one signal; null for what is none. Never throws. */
export function readSignal(text: string): Signal | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || typeof value.type !== 'string') return null;
  const { id, type, timestamp, source, correlationId, metadata, payload } = value;
  const words = (word: unknown): string => (typeof word === 'string' ? word : '');
  return {
    id: words(id),
    type,
    at: typeof timestamp === 'number' ? timestamp : 0,
    source: words(source),
    sourceId: isObject(metadata) ? words(metadata.sourceId) : '',
    correlation: words(correlationId),
    payload: isObject(payload) ? payload : {},
  };
}
