import { describe, expect, test } from 'vitest';
import { ask } from './ask';
import { readRun, readWiring } from './run';
import { readSignal } from './signal';
import { readSource, readSources, Sources } from './sources';

const whole = { id: 'local:openclaw', name: 'OpenClaw', colour: '#e5484d', protocol: 'openclaw', url: 'ws://127.0.0.1:18789', local: true, state: 'connected', eventsPerSecond: 3, models: ['a'], model: 'a', needsKey: true, hasKey: true, tokenAutoFilled: true };

describe('what the gateway says of sources', () => {
  test('a source is read with all that it has, and without what it has not', () => {
    const { eventsPerSecond: perSecond, ...same } = whole;
    expect(readSource(whole)).toEqual({ ...same, error: '', perSecond });
    expect(readSource({ id: 'x' })).toEqual({ id: 'x', name: 'x', colour: '', protocol: '', url: '', local: false, state: 'unavailable', error: '', perSecond: 0, models: [], model: '', needsKey: false, hasKey: false, tokenAutoFilled: false });
  });

  test.each([null, 7, [], { id: '' }, { id: 7 }, 'x'])('%j is none', (value) => expect(readSource(value)).toBeNull());

  test('a list leaves out what is none; something else is no list', () => {
    expect(readSources({ sources: [whole, 7, { id: 'b', state: 'asleep' }] })!.map((s) => [s.id, s.state])).toEqual([['local:openclaw', 'connected'], ['b', 'unavailable']]);
    expect(readSources({ sources: 'none' })).toBeNull();
    expect(readSources([])).toBeNull();
  });
});

describe('what is asked of it', () => {
  const record = (status = 200, body: unknown = {}) => {
    const calls: { path: string; method: string; headers: Record<string, string>; body: unknown }[] = [];
    const fetch = (async (path: string, init: RequestInit) => {
      calls.push({ path, method: init.method!, headers: init.headers as Record<string, string>, body: init.body === undefined ? undefined : JSON.parse(init.body as string) });
      return new Response(status === 204 ? null : JSON.stringify(body), { status });
    }) as typeof globalThis.fetch;
    return { calls, asker: { token: () => 'secret', fetch } };
  };

  test('each goes where the contract says, with the id escaped and the token in a header', async () => {
    const { calls, asker } = record();
    const sources = new Sources(asker);
    const id = 'remote:a/b';
    await sources.add('wss://x.example', '', 'k');
    await sources.remove(id);
    await sources.scan();
    await sources.connect(id);
    await sources.disconnect(id);
    await sources.setKey(id, '');
    await sources.pasteKey(id);
    await sources.chooseModel(id, 'm');
    await sources.prompt(id, 'hello');
    await sources.stop(id);
    const at = '/api/sources/remote%3Aa%2Fb';
    expect(calls.map((c) => [c.method, c.path, c.body])).toEqual([
      ['POST', '/api/sources', { url: 'wss://x.example', key: 'k' }],
      ['DELETE', at, undefined],
      ['POST', '/api/sources/scan', undefined],
      ['POST', `${at}/connect`, undefined],
      ['POST', `${at}/disconnect`, undefined],
      ['PUT', `${at}/key`, { key: '' }],
      ['POST', `${at}/key/paste`, undefined],
      ['PUT', `${at}/model`, { model: 'm' }],
      ['POST', `${at}/prompt`, { text: 'hello' }],
      ['POST', `${at}/stop`, undefined],
    ]);
    expect(calls.every((c) => c.headers.authorization === 'Bearer secret')).toBe(true);
  });

  test('what it refuses it refuses in its own words', async () => {
    expect(await ask(record(403, { message: 'No.' }).asker, '/x')).toEqual({ ok: false, status: 403, words: 'No.' });
    expect(await ask(record(400, { error: 'signal: no type' }).asker, '/x')).toEqual({ ok: false, status: 400, words: 'signal: no type' });
    expect(await ask(record(500, 7).asker, '/x')).toEqual({ ok: false, status: 500, words: 'The gateway refused this (500).' });
    expect(await ask(record(204).asker, '/x')).toEqual({ ok: true, value: null });
    const gone = { token: () => null, fetch: (() => Promise.reject(new TypeError('gone'))) as typeof fetch };
    expect(await ask(gone, '/x')).toEqual({ ok: false, status: 0, words: 'The gateway does not answer.' });
  });
});

describe('a signal, a wiring and a run', () => {
  test('a signal is read from what the gateway writes', () => {
    const text = '{"id":"i","type":"x","timestamp":5,"source":"s","correlationId":"c","metadata":{"sourceId":"local:ollama"},"payload":{"a":1}}';
    expect(readSignal(text)).toEqual({ id: 'i', type: 'x', at: 5, source: 's', sourceId: 'local:ollama', correlation: 'c', payload: { a: 1 } });
    expect(readSignal('{"type":"x","metadata":7,"payload":[1]}')).toEqual({ id: '', type: 'x', at: 0, source: '', sourceId: '', correlation: '', payload: {} });
  });

  test.each(['', '{', '7', 'null', '[]', '{"type":7}'])('%s is no signal', (text) => expect(readSignal(text)).toBeNull());

  test('what is missing in a wiring is empty, and what does not belong there is left out', () => {
    expect(readWiring({})).toEqual({ wires: [], choreographies: [], bindings: [] });
    expect(readWiring({ wires: [7, { id: 'w', filters: [{ type: 'sample', every: 4 }, 'x'] }], choreographies: 'none' })!.wires).toEqual([
      { id: 'w', fromZone: '', fromId: '', toZone: '', toId: '', filters: [{ type: 'sample', every: 4 }] },
    ]);
    expect(readWiring([])).toBeNull();
  });

  test('a run is read with what it counts and its mistakes', () => {
    const wires = [{ id: 'w', seen: 4, passed: 2, filters: [{ type: 'sample', seen: 4, passed: 2 }, 7] }, { id: 'v', seen: -1 }];
    const run = readRun({ running: true, count: 3, dropped: 1, wires, choreographies: [{ id: 'c', seen: 2, performed: 1 }, 'x'], since: 9, mistakes: ['/wires: no', 7] })!;
    expect(run).toMatchObject({ running: true, count: 3, dropped: 1, since: 9, mistakes: ['/wires: no'] });
    expect([...run.wires]).toEqual([
      ['w', { seen: 4, passed: 2, filters: [{ seen: 4, passed: 2 }] }],
      ['v', { seen: 0, passed: 0, filters: [] }],
    ]);
    expect([...run.choreographies]).toEqual([['c', { seen: 2, performed: 1 }]]);
    expect(readRun({ running: 'yes' })).toBeNull();
    const off = readRun({ running: false })!;
    expect(off).toMatchObject({ count: 0, since: 0, mistakes: [] });
    expect([off.wires.size, off.choreographies.size]).toEqual([0, 0]);
  });
});
