import { closeCodes, errorCodes } from '@vela/protocol';
import { describe, expect, test } from 'vitest';
import type { ConnectionStatus } from '../client/connection';
import { banner, duration, failureWords } from './banner';
import { engines } from './fakes';
import { nothingSaid, type Talk } from './talk';
import type { Model } from './view';

function model(connection: Partial<ConnectionStatus> = {}, talk: Partial<Talk> = {}, change: Partial<Model> = {}): Model {
  return {
    connection: { state: 'connected', cause: null, retryAt: null, ...connection },
    talk: { ...nothingSaid, sessionId: 's', ...talk },
    turns: 'agent',
    engines,
    microphone: 'open',
    handsFree: 'off',
    blocked: false,
    tapInsteadOfHold: false,
    agents: null,
    signIn: null,
    ...change,
  };
}

function read(m: Model, now = 0, idleMs = 0): string | null {
  const b = banner(m, now, idleMs);
  if (!b) return null;
  return [b.strong, b.text, b.countdown, b.action && `[${b.action.word}]`].filter(Boolean).join(' ');
}

const closed = (code: number, retryAt: number | null = null): Model =>
  model({ state: 'disconnected', cause: { kind: 'closed', code, reason: '' }, retryAt });

const kept = (retryAt: number, keptUntil: number): Model => ({ ...closed(1006, retryAt), connection: { ...closed(1006, retryAt).connection, keptUntil } });

describe('the words', () => {
  test.each<[string, Model, string | null]>([
    ['all is well', model(), null],
    ['connecting', model({ state: 'connecting' }), null],
    ['not connected', model({ state: 'not connected' }), 'Not connected. Nothing is sent and nothing is heard. [Connect]'],
    ['lost', closed(1006, 4000), 'Connection lost. Trying again in 4 s. [Try now]'],
    ['lost, and kept', kept(4000, 98_000), 'Connection lost. Trying again in 4 s. The session is kept for 1:38. [Try now]'],
    ['lost, and nobody knows how long', kept(4000, Infinity), 'Connection lost. Trying again in 4 s. [Try now]'],
    ['lost, and kept no longer', kept(4000, 0), 'Connection lost. Trying again in 4 s. [Try now]'],
    ['taken over', closed(4002), 'This session went on in another window. [Take it back]'],
    ['gone', closed(4006), 'The session has ended. [Start a new session]'],
    ['no such settings', model({ state: 'error', cause: { kind: 'refused', code: 'unsupported', message: 'No opus' } }), 'This gateway cannot do that. No opus. [Settings]'],
    ['a token is wanted: its own view says so', { ...closed(4001), signIn: 'needed' }, null],
    ['going away', closed(1001, 3001), 'Connection lost. Trying again in 4 s. [Try now]'],
    ['the last moment', closed(1011, 1), 'Connection lost. Trying again in 1 s. [Try now]'],
    ['refused', closed(1008), 'The gateway refused this page.'],
    ['too big', closed(1009), 'The gateway closed the connection: a message was too big. [Connect again]'],
    ['full', closed(4004), 'The gateway is full. [Try again]'],
    ['idle', closed(4005), 'Disconnected. Closed after 10 minutes without a turn. [Start a new session]'],
    ['closed without a reason of ours', closed(1000), 'Disconnected. The gateway closed the connection. [Start a new session]'],
    [
      'malformed',
      model({ state: 'error', cause: { kind: 'malformed', why: 'x' } }),
      'Connection error. The gateway sent a message that this page cannot read. [Connect again]',
    ],
    ['socket error', model({ state: 'error', cause: { kind: 'socket' } }), 'Connection error. The gateway cannot be reached. [Connect again]'],
    ['a new session', model({}, { newSession: true }), 'Connected again, to a new session. What was said before is not known to it. [Dismiss]'],
    ['microphone refused', model({}, {}, { microphone: 'refused' }), 'Microphone refused. Vela cannot hear you. [Try again]'],
  ])('%s', (_, m, words) => {
    expect(read(m, 0, 600_000)).toBe(words);
  });

  test.each([
    ['agent_timeout', 'Echo did not answer in time. Your words are kept. [Dismiss]'],
    ['speech_unavailable', 'Recognition is not available. You can type. [Dismiss]'],
    ['turn_interrupted', 'The gateway was started again in the middle of the answer. Your words are kept. [Dismiss]'],
    ['unsupported', 'This gateway cannot do that. Nothing changed. [Dismiss]'],
    ['mocked_turn_in_flight', 'A turn is still running. [Dismiss]'],
    ['turn_in_flight', 'A turn is still running. [Dismiss]'],
    ['audio_too_long', 'Too long: at most 10 minutes in one turn. [Dismiss]'],
    ['rate_limited', 'Too fast. Wait a moment. [Dismiss]'],
    ['session_limit', 'The gateway is full. [Try again]'],
    ['internal', 'Something went wrong in the gateway. The session goes on. [Dismiss]'],
    ['a code of a later gateway', 'Something went wrong in the gateway. The session goes on. [Dismiss]'],
    ['toString', 'Something went wrong in the gateway. The session goes on. [Dismiss]'],
  ])('error %s', (code, words) => {
    expect(read(model({}, { failure: { code, message: 'never shown' } }))).toBe(words);
  });

  test('every error and every close code of the protocol has words', () => {
    expect(Object.keys(failureWords).sort()).toEqual(Object.keys(errorCodes).sort());
    for (const code of Object.keys(closeCodes)) expect(read(closed(Number(code), closeCodes[Number(code)]!.reconnect ? 1 : null))).toBeTruthy();
  });
});

test('what is wrong with an agent is said in the words of the gateway', () => {
  const failed = (code: string) => read(model({}, { failure: { code, message: 'The model has too many\n requests' } }));
  expect(failed('agent_unavailable')).toBe('Echo is not there. The model has too many requests. [Choose another]');
  expect(read(model({}, { failure: { code: 'agent_unavailable', message: '' } }))).toBe('Echo is not there. [Choose another]');
  expect(failed('agent_failed')).toBe('Echo stopped with an error. The model has too many requests. [Dismiss]');
});

test('what can be asked again, once something was said', () => {
  const turns = [{ said: 'a question' } as never];
  expect(read(model({}, { turns, failure: { code: 'agent_timeout', message: '' } }))).toBe(
    'Echo did not answer in time. Your words are kept. [Ask again]',
  );
  expect(read(model({}, { turns, failure: { code: 'agent_timeout', message: '' } }, { turns: 'deterministic' }))).toMatch(/Dismiss/);
});

test('one at a time: the connection before the microphone before the turn before the new session', () => {
  const all = { failure: { code: 'internal', message: '' }, newSession: true };
  const refused = { microphone: 'refused' } as const;
  expect(read(model({ state: 'error', cause: { kind: 'socket' } }, all, refused))).toMatch(/^Connection error/);
  expect(read(model({}, all, refused))).toMatch(/^Microphone refused/);
  expect(read(model({}, all))).toMatch(/^Something went wrong/);
  expect(read(model({}, { newSession: true }))).toMatch(/^Connected again/);
});

test('what changes every second is no part of what is read aloud', () => {
  const b = banner(closed(1006, 4000), 0, 0)!;
  expect(b).toMatchObject({ alert: true, strong: 'Connection lost.', text: '' });
});

test.each([
  [600_000, '10 minutes'],
  [60_000, '1 minute'],
  [20_400, '20 seconds'],
  [1000, '1 second'],
])('%i ms is %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});
