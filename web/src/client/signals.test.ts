import { beforeEach, expect, test } from 'vitest';
import type { ServerEventV2 } from '@vela/protocol';
import { Client } from './client';
import { FakeSocket, FakeTimers } from './fakes';
import { Signals } from './signals';

let timers: FakeTimers;
let sockets: FakeSocket[];
let seen: string[];
let client: Client;
let signals: Signals;

beforeEach(() => {
  timers = new FakeTimers();
  sockets = [];
  seen = [];
  client = new Client({
    url: () => 'ws://gateway/ws',
    socket: (url, protocols) => {
      sockets.push(new FakeSocket(url, protocols));
      return sockets.at(-1)!;
    },
    timers,
    random: () => 1,
    onStatus: () => {},
    onEvent: (event: ServerEventV2) => {
      if (!signals.take(event)) seen.push(event.type);
    },
  });
  signals = new Signals(client, { onSignal: (s) => seen.push(`${s.type} from ${s.source}`), onMissed: (n) => seen.push(`${n} missed`) });
});

const socket = (): FakeSocket => sockets.at(-1)!;
const sent = (): unknown[] => socket().sent.slice(1).map(({ type, payload }) => [type, payload]);
const signal = (type: string): void => socket().say('signal', { id: '1', type, timestamp: 1, source: 's', payload: {} });

test('signals and what was missed of them come beside the session', () => {
  client.connect();
  socket().greet();
  signals.subscribe({ types: ['tool_*'], sources: ['local:claude-code'] });
  expect(sent()).toEqual([['signal.subscribe', { types: ['tool_*'], sources: ['local:claude-code'] }]]);
  signal('tool_call');
  socket().say('signal.missed', { count: 3 });
  signal('tool_result');
  expect(seen).toEqual(['session.ready', 'session.state', 'tool_call from s', '3 missed', 'tool_result from s']);
  expect(client.status.state).toBe('connected');
});

test('what is followed is asked for again on each connection, each filter once, and not what was taken back', () => {
  signals.subscribe({ types: ['a', 'b'] });
  client.connect();
  socket().greet();
  signals.subscribe({ types: ['b', 'a', 'b'] });
  signals.subscribe({ sources: ['s'] });
  signals.unsubscribe({ sources: ['s'] });
  signals.subscribe({ sources: ['t'] });
  socket().end(1006);
  timers.advance(1_000);
  expect(sockets).toHaveLength(2);
  socket().welcome(1);
  expect(sent()).toEqual([
    ['signal.subscribe', { types: ['b', 'a', 'b'] }],
    ['signal.subscribe', { sources: ['t'] }],
  ]);
  signals.unsubscribe();
  socket().end(1006);
  timers.advance(2_000);
  socket().welcome(1);
  expect(sent()).toEqual([]);
});

test('what a person does is emitted, and nothing is queued for later', () => {
  expect(signals.emit('user.click', { target: 'x' })).toBeNull();
  client.connect();
  socket().greet();
  expect(signals.emit('user.click', { target: 'x' })).not.toBeNull();
  signals.emit('user.point', { position: { x: 1, y: 2 } }, 'k1');
  expect(sent()).toEqual([
    ['signal.emit', { type: 'user.click', payload: { target: 'x' } }],
    ['signal.emit', { type: 'user.point', payload: { position: { x: 1, y: 2 } }, correlationId: 'k1' }],
  ]);
});

test.each([
  ['signal', { id: '1', type: 'x', timestamp: 1, source: 's' }],
  ['signal', { id: '1', type: 7, timestamp: 1, source: 's', payload: {} }],
  ['signal', { id: '1', type: 'x', timestamp: 'now', source: 's', payload: {} }],
  ['signal.missed', { count: 'many' }],
])('a %s of the wrong shape is malformed: %o', (type, payload) => {
  client.connect();
  socket().greet();
  socket().say(type, payload);
  expect(client.status.state).toBe('error');
});
