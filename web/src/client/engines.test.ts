import { expect, test } from 'vitest';
import { fetchEngines, readEngines, readTurns, socketAddress } from './engines';

const answer = {
  turns: 'agent',
  agent: { name: 'echo', label: 'Echo (built in)', available: true },
  transcriber: { name: 'pocketsphinx', label: 'PocketSphinx, US English', available: false, why: 'not in this build', better: 'Use a service' },
  voices: [{ name: 'flite', label: 'Flite', available: true }, 'x', {}],
};

test('what the gateway says of its engines', () => {
  expect(readEngines(answer)).toEqual({
    turns: 'agent',
    agent: { name: 'echo', label: 'Echo (built in)', available: true, why: '', better: '' },
    transcriber: { name: 'pocketsphinx', label: 'PocketSphinx, US English', available: false, why: 'not in this build', better: 'Use a service' },
    ears: [{ name: 'pocketsphinx', label: 'PocketSphinx, US English', available: false, why: 'not in this build', better: 'Use a service' }],
    voices: [{ name: 'flite', label: 'Flite', available: true, why: '', better: '' }],
    detectors: [],
  });
});

test('all ears and detectors, where it names them', () => {
  const engine = (name: string) => ({ name, label: name, available: true, why: '', better: '' });
  const read = readEngines({ ...answer, ears: [engine('far'), engine('near')], detectors: [engine('silero'), 3] })!;
  expect([read.ears.map((e) => e.name), read.detectors.map((e) => e.name)]).toEqual([['far', 'near'], ['silero']]);
});

test.each([null, 'agent', {}, { turns: 'both' }, { turns: 1 }])('%j is no such answer', (value) => {
  expect(readEngines(value)).toBeNull();
});

test('an engine that is missing or nameless is none; one without a label has its name', () => {
  expect(readEngines({ turns: 'deterministic', agent: { label: 'X' } })).toEqual({ turns: 'deterministic', agent: null, transcriber: null, ears: [], voices: [], detectors: [] });
  expect(readEngines({ ...answer, agent: { name: 'echo', available: 'yes' } })!.agent).toMatchObject({ label: 'echo', available: false });
});

test('a gateway that fails, answers something else or not at all gives null', async () => {
  const get = (body: string, status = 200): typeof fetch => async () => new Response(body, { status });
  expect(await fetchEngines(null, get(JSON.stringify(answer)))).toEqual(readEngines(answer));
  expect(await fetchEngines(null, get('<html>'))).toBeNull();
  expect(await fetchEngines(null, get(JSON.stringify(answer), 500))).toBeNull();
  expect(await fetchEngines(null, async () => Promise.reject(new TypeError('network')))).toBeNull();
  const silent: typeof fetch = (_, init) => new Promise((_, no) => init!.signal!.addEventListener('abort', () => no(new Error('late'))));
  expect(await fetchEngines(null, silent, 5)).toBeNull();
});

test('a token goes with the question, and a gateway that wants one says so', async () => {
  const asked: (string | null)[] = [];
  const get: typeof fetch = async (_, init) => {
    const who = new Headers(init!.headers).get('authorization');
    asked.push(who);
    return who === 'Bearer a.b.c' ? Response.json(answer) : new Response('', { status: 401 });
  };
  expect(await fetchEngines(null, get)).toBe('sign in');
  expect(await fetchEngines('a.b.c', get)).toEqual(readEngines(answer));
  expect(asked).toEqual([null, 'Bearer a.b.c']);
});

test('the socket is on the page\'s own origin', () => {
  expect(socketAddress({ protocol: 'http:', host: '127.0.0.1:8080' }, 'agent')).toBe('ws://127.0.0.1:8080/ws?turns=agent');
  expect(socketAddress({ protocol: 'https:', host: 'vela.example' }, 'deterministic')).toBe('wss://vela.example/ws?turns=deterministic');
});

test('only the two kinds of turns', () => {
  expect([readTurns('agent'), readTurns('deterministic'), readTurns('AGENT'), readTurns(null)]).toEqual(['agent', 'deterministic', null, null]);
});
