import { serverEventTypes } from '@vela/protocol';
import { describe, expect, test } from 'vitest';
import { decode, encode } from './decode';

const frame = (type: unknown, payload: unknown): string => JSON.stringify({ type, payload });

describe('what the gateway may send', () => {
  const good: Record<string, unknown> = {
    'session.ready': { sessionId: 'b1' },
    'session.state': { value: 'thinking' },
    'transcript.partial': { text: '' },
    'transcript.final': { text: 'hello' },
    'response.text.delta': { text: ' ' },
    'response.completed': {},
    error: { code: 'rate_limited', message: 'slow down', retryable: true },
  };

  test.each(serverEventTypes)('%s', (type) => {
    const payload = good[type];
    expect(payload, 'an event without an example here').toBeDefined();
    expect(decode(frame(type, payload))).toEqual({ kind: 'event', event: { type, payload } });
  });

  test('fields that are not known are ignored, in the envelope and in the payload', () => {
    const text = JSON.stringify({ type: 'session.state', payload: { value: 'idle', mood: 'fine' }, seq: 7, ts: 12 });
    expect(decode(text)).toMatchObject({ kind: 'event', event: { type: 'session.state', payload: { value: 'idle' } } });
  });

  test('an error without retryable, and with a code of a later gateway', () => {
    expect(decode(frame('error', { code: 'out_of_wind', message: '' })).kind).toBe('event');
  });

  test.each(['response.audio.delta', 'constructor', '__proto__', 'toString', 'response.cancel'])(
    'a well-formed %s is unknown, not malformed',
    (type) => {
      expect(decode(`{"type":"${type}","payload":{}}`)).toEqual({ kind: 'unknown', type });
    },
  );
});

describe('what it may not', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', 'garbage'],
    ['half of it', '{"type":"session.ready"'],
    ['a string', '"session.ready"'],
    ['null', 'null'],
    ['an array', '[]'],
    ['no type', '{"payload":{}}'],
    ['an empty type', frame('', {})],
    ['a type that is a number', frame(1, {})],
    ['no payload', '{"type":"response.completed"}'],
    ['a payload that is null', frame('response.completed', null)],
    ['a payload that is an array', frame('response.completed', [])],
    ['an unknown type without a payload', '{"type":"later"}'],
    ['ready without an id', frame('session.ready', {})],
    ['ready with an empty id', frame('session.ready', { sessionId: '' })],
    ['ready with a number', frame('session.ready', { sessionId: 3 })],
    ['an unknown state', frame('session.state', { value: 'dreaming' })],
    ['a state of every object', frame('session.state', { value: 'toString' })],
    ['a partial without text', frame('transcript.partial', {})],
    ['a final with a number', frame('transcript.final', { text: 1 })],
    ['a delta of null', frame('response.text.delta', { text: null })],
    ['an error without a message', frame('error', { code: 'internal' })],
    ['an error without a code', frame('error', { message: 'oh' })],
    ['retryable as a word', frame('error', { code: 'internal', message: '', retryable: 'yes' })],
  ])('%s', (_, text) => {
    expect(decode(text).kind).toBe('malformed');
  });

  test.each([new ArrayBuffer(2), new Blob(['{}']), undefined, 7])('a frame that is no text: %s', (data) => {
    expect(decode(data).kind).toBe('malformed');
  });
});

test('a client event is its type and its payload and nothing else', () => {
  const event = { type: 'input_audio.append', payload: { chunk: 'AAA=' }, extra: 1 } as const;
  expect(encode(event)).toBe('{"type":"input_audio.append","payload":{"chunk":"AAA="}}');
  expect(encode({ type: 'response.cancel', payload: {} })).toBe('{"type":"response.cancel","payload":{}}');
});
