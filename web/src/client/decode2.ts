import type { ClientEventV2 } from '@vela/protocol';
import type { ServerEventV2 } from '@vela/protocol';
import { isObject, readEnvelope, shapes as version1, type Shape } from './decode';

/** What a frame of version 2 turned out to be. seq is there for events of the session, known or not: they are counted either way. */
export type Decoded2 =
  | { kind: 'event'; event: ServerEventV2; seq: number | null }
  | { kind: 'unknown'; type: string; seq: number | null }
  | { kind: 'malformed'; why: string };

const word: (value: unknown) => boolean = (v) => typeof v === 'string';
const number: (value: unknown) => boolean = (v) => typeof v === 'number' && Number.isFinite(v);
const maybe =
  (is: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === undefined || is(value);

const usage = (v: unknown): boolean => isObject(v) && number(v.promptTokens) && number(v.completionTokens);
const item = (v: unknown): boolean => isObject(v) && word(v.role) && word(v.text) && maybe(word)(v.heardText) && number(v.at);

// What is not here is passed over, as a type of a later gateway would be.
const shapes: { [T in ServerEventV2['type']]?: Shape } = {
  ...version1,
  'session.ready': (p) =>
    version1['session.ready'](p) &&
    word(p.resumeToken) &&
    p.resumeToken !== '' &&
    number(p.resumeWindowMs) &&
    isSeq(p.lastSeq, 0) &&
    typeof p.resumed === 'boolean' &&
    typeof p.recovered === 'boolean',
  'response.completed': (p) => maybe(usage)(p.usage) && maybe(word)(p.heardText),
  'response.created': (p) => word(p.responseId) && word(p.turnId),
  'response.audio.delta': (p) => word(p.responseId) && word(p.chunk) && number(p.startMs) && word(p.text),
  'response.cancelled': (p) => word(p.responseId) && word(p.reason) && maybe(word)(p.heardText) && maybe(number)(p.playedMs),
  'thinking.delta': (p) => word(p.text),
  'tool.call': (p) => word(p.callId) && word(p.name) && isObject(p.input),
  'approval.request': (p) =>
    word(p.approvalId) && word(p.callId) && word(p.name) && word(p.summary) && word(p.risk) && number(p.expiresMs),
  // An action and an artifact_type that are not known yet are no mistake.
  status: (p) => word(p.action) && maybe(word)(p.detail),
  artifact: (p) => word(p.artifact_type) && maybe(word)(p.title),
  'tool.result': (p) => word(p.callId) && word(p.name) && typeof p.success === 'boolean',
  signal: (p) => word(p.id) && word(p.type) && number(p.timestamp) && word(p.source) && isObject(p.payload),
  'signal.missed': (p) => number(p.count),
  history: (p) => Array.isArray(p.items) && p.items.every(item),
  'turn.metrics': (p) =>
    word(p.turnId) && maybe(number)(p.sttMs) && maybe(number)(p.firstTokenMs) && maybe(number)(p.firstAudioMs) && number(p.gatewayMs) && number(p.totalMs) && maybe(usage)(p.usage),
  'session.ended': (p) => word(p.reason),
};

/** Whether an object may be taken for a payload of an event. */
export function isPayload(type: ServerEventV2['type'], payload: Record<string, unknown>): boolean {
  return shapes[type]?.(payload) === true;
}

function isSeq(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

/** Reads one frame of a gateway that speaks version 2. Never throws. */
export function decode2(data: unknown): Decoded2 {
  const read = readEnvelope(data);
  if (typeof read === 'string') return { kind: 'malformed', why: read };
  const { type, payload, envelope } = read;
  if (envelope.seq !== undefined && !isSeq(envelope.seq, 1)) return { kind: 'malformed', why: `a wrong seq of ${type}` };
  const seq = (envelope.seq as number | undefined) ?? null;
  const shape = Object.hasOwn(shapes, type) ? shapes[type as ServerEventV2['type']] : undefined;
  if (!shape) return { kind: 'unknown', type, seq };
  if (!shape(payload)) return { kind: 'malformed', why: `a wrong payload of ${type}` };
  const ts = typeof envelope.ts === 'number' ? { ts: envelope.ts } : {};
  return { kind: 'event', event: { type, payload, ...(seq !== null && { seq }), ...ts } as ServerEventV2, seq };
}

/** The text of a message of version 2; an error that is an answer to it has its id as `ref`. */
export function encode2(event: ClientEventV2, id: string): string {
  return JSON.stringify({ type: event.type, payload: event.payload, id });
}
