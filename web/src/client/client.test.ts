import { beforeEach, describe, expect, test } from 'vitest';
import type { ServerEventV2 } from '@vela/protocol';
import { fullJitter } from './backoff';
import { Client, type ClientOptions } from './client';
import type { ConnectionStatus } from './connection';
import { FakeSocket, FakeStore, FakeTimers, terms } from './fakes';

let timers: FakeTimers;
let sockets: FakeSocket[];
let states: string[];
let events: ServerEventV2[];
let caughtUp: number;
let store: FakeStore;
let client: Client;

function make(change: Partial<ClientOptions> = {}): Client {
  return new Client({
    url: () => 'ws://gateway/ws',
    settings: () => ({ turns: 'agent' }),
    socket: (url, protocols) => {
      sockets.push(new FakeSocket(url, protocols));
      return sockets.at(-1)!;
    },
    timers,
    random: () => 1,
    storage: store,
    onStatus: ({ state, retryAt, keptUntil }: ConnectionStatus) =>
      states.push([state, retryAt !== null && 'retry', keptUntil !== undefined && 'kept'].filter(Boolean).join(', ')),
    onEvent: (event) => events.push(event),
    onCaughtUp: () => caughtUp++,
    ...change,
  });
}

beforeEach(() => {
  timers = new FakeTimers();
  sockets = [];
  states = [];
  events = [];
  caughtUp = 0;
  store = new FakeStore();
  client = make();
});

const socket = (): FakeSocket => sockets.at(-1)!;
const texts = (): string[] => events.flatMap((e) => (e.type === 'response.text.delta' ? [e.payload.text] : []));
const delta = (text: string): void => socket().say('response.text.delta', { text });

describe('the way in', () => {
  test('vela.v2 is offered, session.start comes first, and its settings with it', () => {
    client.connect();
    expect(socket().protocols).toEqual(['vela.v2']);
    expect(client.terms).toBeNull();
    socket().greet();
    expect(socket().sent).toEqual([{ type: 'session.start', payload: { turns: 'agent' }, id: 'c1' }]);
    expect(states).toEqual(['connecting', 'connected', 'connected']);
    expect(events.map((e) => e.type)).toEqual(['session.ready', 'session.state']);
    expect(client.terms?.interrupt).toBe(true);
    expect(caughtUp).toBe(0);
  });

  test('connect() and tryNow() leave what is there alone', () => {
    client.connect();
    client.connect();
    socket().greet();
    client.connect();
    client.tryNow();
    expect(sockets).toHaveLength(1);
  });

  test('nothing is sent before session.ready; then each event has an id of its own', () => {
    client.connect();
    socket().open();
    expect(client.send({ type: 'history.get', payload: {} })).toBeNull();
    expect(client.sendAudio(Uint8Array.of(1, 2))).toBe(false);
    socket().say('session.ready', terms('s'));
    const ids = [client.send({ type: 'history.get', payload: {} }), client.send({ type: 'input_text.submit', payload: { text: 'a' } })];
    expect(new Set(ids).size).toBe(2);
    expect(socket().sent.slice(1).map((e) => e.id)).toEqual(ids);
  });

  test('audio is sent as it was agreed: binary, or base64 in JSON', () => {
    client.connect();
    socket().greet();
    client.sendAudio(Uint8Array.of(1, 2));
    expect(socket().sent.at(-1)).toEqual({ type: 'audio', payload: { bytes: [1, 2] } });
    client.disconnect();
    client.connect();
    socket().greet('s2', { audio: { input: { encoding: 'pcm16', rate: 16000, framing: 'json' } } });
    client.sendAudio(Uint8Array.of(1, 2));
    expect(socket().sent.at(-1)).toMatchObject({ type: 'input_audio.append', payload: { chunk: 'AQI=' } });
  });

  test('a gateway that takes the socket and says nothing is given up after 10 s', () => {
    client.connect();
    socket().open();
    timers.advance(10_000);
    expect(states.at(-1)).toBe('disconnected, retry');
  });

  test('settings that the gateway does not have end in words, and are not tried again', () => {
    client.connect();
    socket().open();
    socket().sayRaw('{"type":"error","payload":{"code":"unsupported","message":"no","ref":"c1"}}');
    expect(client.status).toMatchObject({ state: 'error', cause: { kind: 'refused', code: 'unsupported' } });
    timers.advance(600_000);
    expect(sockets).toHaveLength(1);
  });

  test('session.ready said again is handed over and changes what is in force, nothing else', () => {
    client.connect();
    socket().greet();
    socket().say('session.ready', { ...terms('session-1'), interrupt: false, lastSeq: 1 });
    delta('a');
    expect(client.terms?.interrupt).toBe(false);
    expect(texts()).toEqual(['a']);
  });
});

describe('who comes', () => {
  test('a token is offered beside the version, and asked for at each try', () => {
    let token: string | null = 'a.b.c';
    client = make({ token: () => token });
    client.connect();
    expect(socket().protocols).toEqual(['vela.v2', 'vela.token.a.b.c']);
    socket().greet();
    socket().end(4001, 'expired');
    expect(client.status).toMatchObject({ state: 'disconnected', cause: { kind: 'closed', code: 4001 }, retryAt: null });
    token = 'd.e.f';
    client.connect();
    expect(socket().protocols).toEqual(['vela.v2', 'vela.token.d.e.f']);
    socket().open();
    expect(socket().sent[0]).toMatchObject({ type: 'session.resume', payload: { after: 1 } });
  });

  test('pause() keeps the session for another token', () => {
    client.connect();
    socket().greet();
    client.pause({ kind: 'closed', code: 4001, reason: '' });
    expect(states.at(-1)).toBe('disconnected, kept');
    expect(socket().types).toEqual(['session.start']);
    client.connect();
    socket().welcome(1);
    expect(client.status.state).toBe('connected');
  });

  test('an address or a token that the browser refuses is an error, not an exception', () => {
    client = make({
      socket: () => {
        throw new SyntaxError('nonsense');
      },
    });
    client.connect();
    expect(states).toEqual(['connecting', 'error']);
  });
});

describe('lost and back', () => {
  test.each([1001, 1006, 1011, 4003])('%i: resumed after the last event, and exactly what was missed is handed over', (code) => {
    client.connect();
    socket().greet();
    delta('one ');
    socket().end(code);
    expect(states.at(-1)).toBe('disconnected, retry, kept');
    expect(client.status.keptUntil).toBe(timers.now() + 120_000);
    timers.advance(1000);
    expect(states.at(-1)).toBe('connecting, kept');
    socket().welcome(2, 3);
    expect(socket().sent).toEqual([{ type: 'session.resume', payload: { token: 'token of session-1', after: 2 }, id: 'c2' }]);
    expect(states.slice(-2)).toEqual(['connected, kept', 'connected']);
    expect(caughtUp).toBe(0);
    delta('two ');
    expect(caughtUp).toBe(1);
    delta('three');
    expect(texts()).toEqual(['one ', 'two ', 'three']);
    expect(caughtUp).toBe(1);
    const back = events.filter((e) => e.type === 'session.ready')[1]!;
    expect(back.payload).toMatchObject({ resumed: true, recovered: true });
  });

  test('nothing missed: caught up at once', () => {
    client.connect();
    socket().greet();
    socket().end(1006);
    timers.advance(1000);
    socket().welcome(1);
    expect(caughtUp).toBe(1);
  });

  test('what comes twice is handed over once', () => {
    client.connect();
    socket().greet();
    delta('a');
    socket().seq = 0;
    socket().say('session.state', { value: 'idle' });
    delta('a');
    delta('b');
    expect(texts()).toEqual(['a', 'b']);
    expect(events.filter((e) => e.type === 'session.state')).toHaveLength(1);
  });

  test('an event of a type that is not known counts, and is passed over', () => {
    client.connect();
    socket().greet();
    socket().say('weather', { text: 'x' });
    delta('a');
    socket().end(1006);
    timers.advance(1000);
    socket().open();
    expect(socket().sent[0]!.payload.after).toBe(3);
    expect(texts()).toEqual(['a']);
  });

  test.each([
    ['recovered: false', () => socket().welcome(2, 9, false), ['session.resume', 'session.close']],
    [
      '4006',
      () => {
        socket().open();
        socket().say('error', { code: 'session_gone', message: 'x' });
        socket().end(4006);
      },
      ['session.resume'],
    ],
  ])('%s: a new session at once, and its readiness says so', (_, answer, sent) => {
    client.connect();
    socket().greet();
    delta('a');
    socket().end(1006);
    timers.advance(1000);
    const second = socket();
    answer();
    expect(second.types).toEqual(sent);
    expect(sockets).toHaveLength(3);
    socket().greet('session-2');
    expect(socket().types).toEqual(['session.start']);
    expect(events.filter((e) => e.type === 'session.ready').map((e) => [e.payload.sessionId, e.payload.resumed])).toEqual([
      ['session-1', false],
      ['session-2', false],
    ]);
    expect(events.some((e) => e.type === 'error')).toBe(false);
    delta('b');
    expect(texts()).toEqual(['a', 'b']);
    expect(states.at(-1)).toBe('connected');
  });

  test('a gap: what follows is not handed over, and a new session begins', () => {
    client.connect();
    socket().greet();
    timers.advance(20_000);
    socket().seq = 5;
    delta('far ahead');
    expect(texts()).toEqual([]);
    expect(sockets[0]!.types).toEqual(['session.start', 'session.close']);
    socket().greet('session-2');
    expect(socket().types).toEqual(['session.start']);
  });

  test('gaps over and over are not asked for at once', () => {
    client.connect();
    socket().greet();
    socket().seq = 5;
    delta('far ahead');
    expect(states.at(-1)).toBe('disconnected, retry');
    expect(sockets).toHaveLength(1);
  });

  test('after the window a new session, without asking for the old one', () => {
    client.connect();
    socket().greet();
    socket().end(1006);
    timers.advance(1000);
    for (let i = 0; i < 30; i++) {
      socket().fail();
      timers.advance(15_000);
    }
    expect(states.at(-1)).toBe('connecting');
    socket().greet('session-2');
    expect(socket().types).toEqual(['session.start']);
  });

  test('full jitter, doubling: a second, two, four, up to 15 s, and anything below', () => {
    expect([0, 1, 2, 3, 4, 9].map((n) => fullJitter(n, () => 1))).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000]);
    expect([fullJitter(3, () => 0), fullJitter(3, () => 0.25)]).toEqual([0, 2000]);
  });

  test('a session that lasted begins the series anew, one that broke at once does not', () => {
    client.connect();
    socket().greet();
    const lose = (): number => {
      socket().end(1006);
      return client.status.retryAt! - timers.now();
    };
    expect(lose()).toBe(1000);
    timers.advance(1000);
    socket().welcome(1);
    expect(lose()).toBe(2000);
    timers.advance(2000);
    socket().welcome(1);
    timers.advance(10_000);
    expect(lose()).toBe(1000);
  });

  test('Try now does not wait', () => {
    client.connect();
    socket().greet();
    socket().end(1006);
    client.tryNow();
    expect(sockets).toHaveLength(2);
    socket().welcome(1);
    expect(states.at(-1)).toBe('connected');
    expect(timers.waiting).toBe(0);
  });
});

describe('ends', () => {
  test('4002: taken over, not fought over; and taken back when asked for', () => {
    client.connect();
    socket().greet();
    socket().end(4002);
    expect(states.at(-1)).toBe('disconnected, kept');
    timers.advance(600_000);
    expect(sockets).toHaveLength(1);
    client.connect();
    socket().welcome(1);
    expect(socket().types).toEqual(['session.resume']);
  });

  test('4006 when just that session was asked for is told, and no other begins', () => {
    client.connect();
    socket().greet();
    socket().end(4002);
    client.connect();
    socket().open();
    socket().end(4006);
    expect(client.status).toMatchObject({ state: 'disconnected', cause: { kind: 'closed', code: 4006 }, retryAt: null });
    expect(states.at(-1)).toBe('disconnected');
    client.connect();
    socket().greet('session-2');
    expect(socket().types).toEqual(['session.start']);
  });

  test.each([1000, 4004, 4005, 4006])('%i: the session is over, and nobody comes back by himself', (code) => {
    client.connect();
    socket().greet();
    socket().end(code);
    expect(states.at(-1)).toBe('disconnected');
    timers.advance(600_000);
    expect(sockets).toHaveLength(1);
    client.connect();
    socket().open();
    expect(socket().types).toEqual(['session.start']);
  });

  test.each([1008, 1009, 4001])('%i: closed, but the session is there to come back to', (code) => {
    client.connect();
    socket().greet();
    socket().end(code);
    expect(states.at(-1)).toBe('disconnected, kept');
    client.connect();
    socket().open();
    expect(socket().types).toEqual(['session.resume']);
  });

  test.each([
    ['closed', 'session.start'],
    ['idle', 'session.start'],
    ['error', 'session.start'],
    ['shutdown', 'session.resume'],
  ])('session.ended, %s: the next connection sends %s', (reason, first) => {
    client.connect();
    socket().greet();
    socket().say('session.ended', { reason });
    socket().end(1001);
    timers.advance(1000);
    socket().open();
    expect(socket().types).toEqual([first]);
  });

  test('disconnect() closes the session for good', () => {
    client.connect();
    socket().greet();
    const first = socket();
    client.disconnect();
    expect(first.types.at(-1)).toBe('session.close');
    expect(client.status).toEqual({ state: 'not connected', cause: null, retryAt: null });
    client.connect();
    socket().open();
    expect(socket().types).toEqual(['session.start']);
    first.say('session.state', { value: 'thinking' });
    first.end(1006);
    expect(states.at(-1)).toBe('connected');
  });

  test.each([
    'garbage',
    '{"type":"session.state","payload":{"value":"dreaming"},"seq":2}',
    '{"type":"session.state","payload":{"value":"idle"},"seq":0}',
    '{"type":"session.state","payload":{"value":"idle"},"seq":"2"}',
    new ArrayBuffer(16),
  ])('%s cannot be read: an error, and the next session is a new one', (data) => {
    client.connect();
    socket().greet();
    socket().sayRaw(data);
    expect(states.at(-1)).toBe('error');
    expect(client.status.cause?.kind).toBe('malformed');
    client.connect();
    socket().open();
    expect(socket().types).toEqual(['session.start']);
  });

  test('a first try that never opened ends there; one with a session to resume goes on', () => {
    client.connect();
    socket().fail();
    expect(states.at(-1)).toBe('error');
    client.connect();
    socket().greet();
    socket().fail();
    expect(states.at(-1)).toBe('error');
    socket().end(1006);
    expect(states.at(-1)).toBe('disconnected, retry, kept');
    timers.advance(1000);
    socket().fail();
    expect(states.at(-1)).toBe('disconnected, retry, kept');
  });
});

describe('a page that is loaded again', () => {
  const reload = (): void => {
    client.keep();
    client = make();
    events = [];
    client.connect();
    socket().open();
  };

  test('takes the session up, with the turn that runs from its beginning', () => {
    client.connect();
    socket().greet();
    socket().say('session.state', { value: 'thinking' });
    delta('half');
    reload();
    expect(socket().sent[0]).toMatchObject({ type: 'session.resume', payload: { token: 'token of session-1', after: 0 } });
    expect(store.kept.size).toBe(0); // a copy of the page gets a session of its own
    socket().welcome(0, 3);
    socket().say('session.state', { value: 'idle' });
    socket().say('session.state', { value: 'thinking' });
    delta('half');
    expect(texts()).toEqual(['half']);
    expect(caughtUp).toBe(1);
  });

  const turn = (text: string): void => {
    socket().say('session.state', { value: 'thinking' });
    delta(text);
    socket().say('session.state', { value: 'idle' });
  };

  test('hears all of the turns again, as far as the gateway surely has them', () => {
    client.connect();
    socket().greet();
    turn('one');
    turn('two');
    reload();
    expect(socket().sent[0]!.payload.after).toBe(0);
  });

  test.each([
    ['many events', () => Array.from({ length: 400 }, () => turn('x')), 1025, 900],
    ['long ones', () => Array.from({ length: 100 }, () => turn('x'.repeat(30_000))), 106, 90],
  ])('%s: from the end of a turn, not too long ago', (_, happen, most, least) => {
    client.connect();
    socket().greet();
    happen();
    const { seq } = socket();
    reload();
    const after = socket().sent[0]!.payload.after as number;
    expect(after % 3).toBe(1);
    expect(seq - after).toBeLessThan(most);
    expect(seq - after).toBeGreaterThan(least);
  });

  test('a turn that is longer than that is heard from its beginning all the same', () => {
    client.connect();
    socket().greet();
    turn('one');
    socket().say('session.state', { value: 'thinking' });
    for (let i = 0; i < 2000; i++) delta('x');
    reload();
    expect(socket().sent[0]!.payload.after).toBe(4);
  });

  test('what was before a new conversation does not come back', () => {
    client.connect();
    socket().greet();
    turn('one');
    client.send({ type: 'history.get', payload: {} });
    socket().say('history', { items: [] });
    reload();
    expect(socket().sent[0]!.payload.after).toBe(0);
    socket().welcome(0, 4);
    socket().say('session.state', { value: 'idle' });
    turn('one');
    client.send({ type: 'history.clear', payload: {} });
    socket().say('history', { items: [] });
    reload();
    expect(socket().sent[0]!.payload.after).toBe(4);
  });

  test('a session that is gone meanwhile: a new one, without a word', () => {
    client.connect();
    socket().greet();
    reload();
    socket().end(4006);
    socket().greet('session-2');
    expect(events.map((e) => e.type)).toEqual(['session.ready', 'session.state']);
  });

  test('a session that was ended is not kept, and what is nonsense is no session', () => {
    client.connect();
    socket().greet();
    client.keep();
    client.disconnect();
    client.keep();
    expect(store.kept.size).toBe(0);
    for (const nonsense of ['{', '7', '{"token":1,"after":2,"windowMs":3}', '{"token":"a","after":"2","windowMs":3}', 'null']) {
      store.setItem('vela.session', nonsense);
      client = make();
      client.connect();
      socket().open();
      expect(socket().types).toEqual(['session.start']);
    }
  });

  test('a page that came back from where it was kept has its session itself', () => {
    client.connect();
    socket().greet();
    client.keep();
    client.unkeep();
    expect(store.kept.size).toBe(0);
  });

  test('storage that is closed to the page is no error', () => {
    const closed = { getItem: () => fail(), setItem: () => fail(), removeItem: () => fail() };
    const fail = (): never => {
      throw new DOMException('closed', 'SecurityError');
    };
    client = make({ storage: closed });
    client.connect();
    socket().greet();
    client.keep();
    client.unkeep();
    expect(client.status.state).toBe('connected');
  });
});

/** A gateway with one session: it numbers what happens, and gives who comes back what is missing, as far as its log reaches. */
class FakeGateway {
  log: string[] = [];
  attached: FakeSocket | null = null;
  reads = 0;
  resumes = 0;
  began = false;

  answer(): void {
    if (!this.attached || this.attached.readyState !== 1) return;
    for (; this.reads < this.attached.sent.length; this.reads++) {
      const { type, payload } = this.attached.sent[this.reads]!;
      const ready = { ...terms('session-1'), lastSeq: this.log.length };
      if (type === 'session.start') this.attached.say('session.ready', ready);
      this.began = true;
      if (type !== 'session.resume') continue;
      this.resumes++;
      this.attached.say('session.ready', { ...ready, resumed: true, recovered: true });
      for (let i = payload.after as number; i < this.log.length; i++) this.#give(i);
    }
  }

  happen(text: string): void {
    if (!this.began) return;
    this.log.push(text);
    if (this.attached?.readyState === 1 && this.reads > 0) this.#give(this.log.length - 1);
  }

  #give(i: number): void {
    this.attached!.sayRaw(JSON.stringify({ type: 'response.text.delta', payload: { text: this.log[i] }, seq: i + 1, ts: i }));
  }
}

test('a thousand cuts at random: nothing twice, nothing lost', () => {
  let seed = 20_251_121;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const gateway = new FakeGateway();
  client = make({ random });
  client.connect();
  let cuts = 0;
  let n = 0;
  while (cuts < 1000) {
    const at = socket();
    if (gateway.attached !== at) {
      gateway.attached = at;
      gateway.reads = 0;
    }
    const dice = random();
    if (at.closedWith !== undefined || at.readyState === 3) {
      timers.advance(15_000 * random());
    } else if (at.readyState === 0) {
      if (dice < 0.2) at.fail(); // the handshake fails
      else at.open();
    } else if (dice < 0.3) {
      // Cut, also before the greeting was answered, or in the middle of what was missed.
      const left = Math.floor(4 * random());
      const hear = at.onmessage!;
      let heard = 0;
      at.onmessage = (event) => {
        if (heard++ < left) hear(event);
      };
      gateway.answer();
      for (let i = 0; i < 3; i++) gateway.happen(`${++n} `);
      at.end([1001, 1006, 1011, 4003][Math.floor(4 * random())]!);
      cuts++;
    } else {
      gateway.answer();
      gateway.happen(`${++n} `);
      if (random() < 0.1) timers.advance(30_000 * random());
    }
    if (random() < 0.5) gateway.happen(`${++n} `);
  }
  // And one last time, to the end of it.
  for (let i = 0; i < 50 && texts().length < gateway.log.length; i++) {
    if (socket().readyState === 0) socket().open();
    gateway.attached = socket();
    gateway.reads = 0;
    gateway.answer();
    timers.advance(20_000);
  }
  expect(gateway.resumes).toBeGreaterThan(300);
  expect(texts()).toEqual(gateway.log);
});
