import type { ServerEvent } from '@vela/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { backoff } from './backoff';
import { Connection, type ConnectionStatus } from './connection';
import { FakeSocket, FakeTimers } from './fakes';

let timers: FakeTimers;
let sockets: FakeSocket[];
let states: string[];
let events: ServerEvent[];
let connection: Connection;

beforeEach(() => {
  timers = new FakeTimers();
  sockets = [];
  states = [];
  events = [];
  connection = new Connection({
    url: () => 'ws://gateway/ws?turns=deterministic',
    socket: (url) => {
      sockets.push(new FakeSocket(url));
      return sockets.at(-1)!;
    },
    timers,
    random: () => 1,
    onStatus: (status: ConnectionStatus) => states.push(status.retryAt === null ? status.state : `${status.state}, retry`),
    onEvent: (event) => events.push(event),
  });
});

const socket = (): FakeSocket => sockets.at(-1)!;

describe('the way in', () => {
  test('not connected, connecting, connected; then events', () => {
    expect(connection.status.state).toBe('not connected');
    connection.connect();
    expect(socket().url).toBe('ws://gateway/ws?turns=deterministic');
    socket().greet('b1');
    expect(states).toEqual(['connecting', 'connected']);
    expect(events.map((e) => e.type)).toEqual(['session.ready', 'session.state']);
  });

  test('connect() leaves what is there alone', () => {
    connection.connect();
    connection.connect();
    socket().greet();
    connection.connect();
    connection.tryNow();
    expect(sockets).toHaveLength(1);
  });

  test('nothing is sent before it is open, and send says so', () => {
    expect(connection.send({ type: 'session.start', payload: {} })).toBe(false);
    connection.connect();
    expect(connection.send({ type: 'session.start', payload: {} })).toBe(false);
    socket().open();
    expect(connection.send({ type: 'session.start', payload: {} })).toBe(true);
    expect(socket().types).toEqual(['session.start']);
  });

  test('a gateway that says nothing is given up after 10 s', () => {
    connection.connect();
    socket().open();
    timers.advance(9_999);
    expect(states.at(-1)).toBe('connected');
    timers.advance(1);
    expect(states.at(-1)).toBe('disconnected, retry');
  });

  test('an address that the browser refuses is an error, not an exception', () => {
    const refusing = new Connection({
      url: () => 'nonsense',
      socket: () => {
        throw new SyntaxError('nonsense');
      },
      timers,
      onStatus: (s) => states.push(s.state),
      onEvent: () => {},
    });
    refusing.connect();
    expect(states).toEqual(['connecting', 'error']);
  });
});

describe('what goes wrong', () => {
  test.each(['garbage', '{"type":"session.state","payload":{"value":"dreaming"}}', new ArrayBuffer(1)])('a message like %s is an error', (data) => {
    connection.connect();
    socket().greet();
    socket().sayRaw(data);
    expect(states.at(-1)).toBe('error');
    expect(connection.status.cause?.kind).toBe('malformed');
    expect(socket().closedWith).toBe(1000);
    expect(timers.waiting).toBe(0);
    // and nothing that socket says afterwards counts
    const before = events.length;
    socket().say('session.state', { value: 'idle' });
    socket().end(1006);
    expect(events).toHaveLength(before);
    expect(states.at(-1)).toBe('error');
  });

  test('an unknown event is passed over', () => {
    connection.connect();
    socket().greet();
    socket().say('response.audio.delta', { chunk: '' });
    expect(states.at(-1)).toBe('connected');
    expect(events).toHaveLength(2);
  });

  test('a socket error before it ever opened ends there, until somebody connects again', () => {
    connection.connect();
    socket().fail();
    socket().end(1006);
    expect(states).toEqual(['connecting', 'error']);
    timers.advance(600_000);
    expect(sockets).toHaveLength(1);
    connection.connect();
    socket().greet();
    expect(states.at(-1)).toBe('connected');
  });

  test('a socket error while open shows, and its close says whether to come back', () => {
    connection.connect();
    socket().greet();
    socket().fail();
    expect(states.at(-1)).toBe('error');
    socket().end(1006);
    expect(states.at(-1)).toBe('disconnected, retry');
  });

  test.each([
    [1001, true],
    [1006, true],
    [1011, true],
    [1000, false],
    [1008, false],
    [1009, false],
    [4004, false],
    [4005, false],
    [4999, false],
  ])('closed with %i: comes back by itself: %s', (code, back) => {
    connection.connect();
    socket().greet();
    socket().end(code, 'why');
    expect(connection.status).toMatchObject({ state: 'disconnected', cause: { kind: 'closed', code, reason: 'why' } });
    expect(connection.status.retryAt !== null).toBe(back);
    timers.advance(120_000);
    expect(sockets.length > 1).toBe(back);
  });
});

describe('the way back', () => {
  const lose = (): void => {
    socket().end(1006);
  };

  test('a second, two, four, up to half a minute', () => {
    connection.connect();
    socket().greet();
    lose();
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      waits.push(connection.status.retryAt! - timers.now());
      timers.advance(waits.at(-1)! - 1);
      const before = sockets.length;
      timers.advance(1);
      expect(sockets).toHaveLength(before + 1);
      socket().fail(); // a try made by itself goes on trying
      socket().end(1006);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });

  test('jitter: between half and all of it', () => {
    expect([backoff(3, () => 0), backoff(3, () => 0.5), backoff(3, () => 1)]).toEqual([4000, 6000, 8000]);
  });

  test('a session that lasted begins the series anew, one that broke at once does not', () => {
    connection.connect();
    socket().greet();
    lose();
    timers.advance(1000);
    socket().greet();
    lose();
    expect(connection.status.retryAt! - timers.now()).toBe(2000);
    timers.advance(2000);
    socket().greet();
    timers.advance(10_000);
    lose();
    expect(connection.status.retryAt! - timers.now()).toBe(1000);
  });

  test('Try now does not wait, and a failure of it goes on trying', () => {
    connection.connect();
    socket().greet();
    lose();
    connection.tryNow();
    expect(sockets).toHaveLength(2);
    socket().fail();
    expect(states.at(-1)).toBe('disconnected, retry');
    timers.advance(60_000);
    expect(sockets.length).toBeGreaterThan(2);
  });

  test('disconnect() ends everything, also a planned try', () => {
    connection.connect();
    socket().greet();
    lose();
    connection.disconnect();
    expect(connection.status).toEqual({ state: 'not connected', cause: null, retryAt: null });
    timers.advance(600_000);
    expect(sockets).toHaveLength(1);
    expect(timers.waiting).toBe(0);
  });

  test('a socket that was left has no say any more', () => {
    connection.connect();
    const first = socket();
    first.greet();
    connection.disconnect();
    connection.connect();
    socket().greet();
    first.say('session.state', { value: 'speaking' });
    first.fail();
    first.end(1006);
    expect(states.at(-1)).toBe('connected');
    expect(events.every((e) => e.type !== 'session.state' || e.payload.value === 'idle')).toBe(true);
  });
});
