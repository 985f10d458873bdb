import type { ClientEvent, ServerEvent, State } from '@vela/protocol';

/**
 * What a frame turned out to be. Changes of the protocol are additive, so a well-formed envelope of a type that this page does not know is
 * no mistake of the gateway; anything else that does not fit is.
 */
export type Decoded =
  | { kind: 'event'; event: ServerEvent }
  | { kind: 'unknown'; type: string }
  | { kind: 'malformed'; why: string };

type Payload = Record<string, unknown>;
/** Says whether a payload has what its type needs; more than that may be in it. */
export type Shape = (payload: Payload) => boolean;

const states: Record<State, true> = { idle: true, listening: true, thinking: true, speaking: true };

const text: Shape = (p) => typeof p.text === 'string';

// Typed by the union, so that an event added to the protocol does not compile until its shape is written here.
export const shapes: Record<ServerEvent['type'], Shape> = {
  'session.ready': (p) => typeof p.sessionId === 'string' && p.sessionId !== '',
  'session.state': (p) => typeof p.value === 'string' && Object.hasOwn(states, p.value),
  'transcript.partial': text,
  'transcript.final': text,
  'response.text.delta': text,
  'response.completed': () => true,
  // Any code: a new one is an addition, and is shown in general words.
  error: (p) =>
    typeof p.code === 'string' &&
    typeof p.message === 'string' &&
    (p.retryable === undefined || typeof p.retryable === 'boolean'),
};

/** Whether a value is a JSON object; an array is none. */
export function isObject(value: unknown): value is Payload {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What both versions have in common: a type and a payload, or the reason why there is none. */
export function readEnvelope(data: unknown): { type: string; payload: Payload; envelope: Payload } | string {
  if (typeof data !== 'string') return 'a binary frame';
  let envelope: unknown;
  try {
    envelope = JSON.parse(data);
  } catch {
    return 'not JSON';
  }
  if (!isObject(envelope)) return 'not an object';
  const { type, payload } = envelope;
  if (typeof type !== 'string' || type === '') return 'no type';
  if (!isObject(payload)) return `${type} without a payload`;
  return { type, payload, envelope };
}

/** Reads one frame of the gateway. Never throws. */
export function decode(data: unknown): Decoded {
  const read = readEnvelope(data);
  if (typeof read === 'string') return { kind: 'malformed', why: read };
  const { type, payload } = read;
  // Not a plain look-up: a type named "constructor" is unknown, not a function of Object.
  if (!Object.hasOwn(shapes, type)) return { kind: 'unknown', type };
  if (!shapes[type as ServerEvent['type']](payload)) return { kind: 'malformed', why: `a wrong payload of ${type}` };
  return { kind: 'event', event: { type, payload } as ServerEvent };
}

/** The text of a message of version 1. */
export function encode(event: ClientEvent): string {
  return JSON.stringify({ type: event.type, payload: event.payload });
}
