import { describe, expect, test } from 'vitest';
import { engines } from './fakes';
import { helm, turnActive } from './helm';
import { nothingSaid, type Talk } from './talk';
import { connectionWord, nameOf, recogniserLine, sessionWord, type Model } from './view';

function model(change: Partial<Omit<Model, 'talk'>> = {}, talk: Partial<Talk> = {}): Model {
  return {
    connection: { state: 'connected', cause: null, retryAt: null },
    talk: { ...nothingSaid, sessionId: 's', ...talk },
    turns: 'deterministic',
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

const noSession = { sessionId: null };
const at = (state: Model['connection']['state'], retryAt: number | null = null): Partial<Model> => ({
  connection: { state, cause: null, retryAt },
});

describe('disabled when', () => {
  const yes = true;
  const no = false;
  // the control, Run a mocked turn, Stop
  test.each<[string, Model, boolean, boolean, boolean]>([
    ['not connected', model(at('not connected'), noSession), yes, yes, yes],
    ['connecting', model(at('connecting'), noSession), yes, yes, yes],
    ['connected, before session.ready', model({}, noSession), yes, yes, yes],
    ['reconnecting', model(at('disconnected', 5), noSession), yes, yes, yes],
    ['disconnected', model(at('disconnected'), noSession), yes, yes, yes],
    ['error', model(at('error'), noSession), yes, yes, yes],
    ['idle', model(), no, no, yes],
    ['held', model({}, { held: 'shell' }), no, yes, no],
    ['released, the gateway has not answered', model({}, { inFlight: 'shell' }), yes, yes, no],
    ['triggered, the gateway has not answered', model({}, { inFlight: 'mocked' }), yes, yes, no],
    ['a mocked turn listens', model({}, { inFlight: 'mocked', phase: 'listening' }), yes, yes, no],
    ['thinking', model({}, { inFlight: 'shell', phase: 'thinking' }), yes, yes, no],
    ['speaking', model({}, { inFlight: 'shell', phase: 'speaking' }), yes, yes, no],
    ['speaking, though this page began no turn', model({}, { phase: 'speaking' }), yes, yes, no],
    ['listening, though this page holds nothing', model({}, { phase: 'listening' }), no, no, no],
    ['agent: idle', model({ turns: 'agent' }), no, no, yes],
    ['agent: microphone closed', model({ turns: 'agent', microphone: 'closed' }), no, no, yes],
    ['agent: refused', model({ turns: 'agent', microphone: 'refused' }), yes, no, yes],
    ['agent: no microphone', model({ turns: 'agent', microphone: 'none' }), yes, no, yes],
    ['agent: in flight', model({ turns: 'agent' }, { inFlight: 'voice', phase: 'thinking' }), yes, yes, no],
    ['deterministic: a refused microphone does not matter', model({ microphone: 'refused' }), no, no, yes],
  ])('%s', (_, m, control, mocked, stop) => {
    const view = helm(m);
    expect({ control: view.control.disabled, mocked: view.mocked.disabled, stop: view.stop.disabled }).toEqual({ control, mocked, stop });
    // What is off says why.
    expect(view.control.description.startsWith('Off: ')).toBe(control);
    expect(view.mocked.why !== '').toBe(mocked);
    expect(view.stop.why !== '').toBe(stop);
  });
});

test.each<[string, Model, string]>([
  ['held', model({}, { held: 'shell' }), 'Discard'],
  ['deterministic', model({}, { inFlight: 'shell' }), 'Cancel'],
  ['a mocked turn among agent turns', model({ turns: 'agent' }, { inFlight: 'mocked' }), 'Cancel'],
  ['agent', model({ turns: 'agent' }, { inFlight: 'voice' }), 'Stop'],
])('the stop control reads, %s', (_, m, word) => {
  expect(helm(m).stop.word).toBe(word);
});

test.each<[string, Model, string, string]>([
  ['not connected', model(at('not connected'), noSession), 'Not connected', 'No session'],
  ['connecting', model(at('connecting'), noSession), 'Connecting', 'No session'],
  ['connected', model({}, noSession), 'Connected', 'No session'],
  ['ready', model({}, { phase: 'thinking' }), 'Connected', 'Thinking'],
  ['between tries', model(at('disconnected', 5), { ...noSession, ended: true }), 'Reconnecting', 'Ended'],
  ['for good', model(at('disconnected'), { ...noSession, ended: true }), 'Disconnected', 'Ended'],
  ['error', model(at('error'), { ...noSession, ended: true }), 'Error', 'Ended'],
])('the two facts, %s', (_, m, connection, session) => {
  expect([connectionWord(m.connection), sessionWord(m.talk)]).toEqual([connection, session]);
});

test.each<[string, Model, string, string]>([
  ['idle', model({ turns: 'agent' }), 'Hold to talk', 'or hold Space, let go to send'],
  ['tapping', model({ turns: 'agent', tapInsteadOfHold: true }), 'Press to talk', 'press again to send'],
  ['held', model({ turns: 'agent' }, { held: 'voice' }), 'Let go anywhere to send', ''],
  ['connecting', model(at('connecting'), noSession), 'Connecting', 'Waiting for the session to be ready.'],
  ['error', model(at('error'), { ...noSession, turns: [{} as never] }), 'Connection error', 'What was said stays here. Connect again to go on.'],
  ['lost', model(at('disconnected', 5), { ...noSession, turns: [{} as never] }), 'Connection lost', 'What was said stays here.'],
])('the words, %s', (_, m, title, small) => {
  expect([helm(m).title, helm(m).small]).toEqual([title, small]);
});

test('the level ring is there only while a voice is held', () => {
  const ring = (m: Model): string => helm(m).control.ring;
  expect(ring(model({ turns: 'agent' }))).toBe('ticks');
  expect(ring(model({ turns: 'agent' }, { held: 'voice' }))).toBe('level');
  expect(ring(model({ turns: 'agent' }, { inFlight: 'voice', phase: 'thinking' }))).toBe('travelling');
  expect(ring(model({}, { held: 'shell' }))).toBe('dashed');
  expect(ring(model(at('disconnected', 5), noSession))).toBe('waiting');
  expect(ring(model(at('error'), noSession))).toBe('dashed');
});

test('a turn is active from the hold to the idle', () => {
  expect(turnActive(model())).toBe(false);
  expect(turnActive(model({}, { held: 'shell' }))).toBe(true);
  expect(turnActive(model({}, { inFlight: 'shell' }))).toBe(true);
  expect(turnActive(model({}, { phase: 'listening' }))).toBe(true);
});

test('the line about the recogniser', () => {
  expect(recogniserLine(model())).toBe('Recognised by PocketSphinx, US English. Set a service.');
  const off = { ...engines.transcriber!, available: false, why: 'not in this build', better: '' };
  expect(recogniserLine(model({ engines: { ...engines, transcriber: off } }))).toBe('PocketSphinx, US English is not available: not in this build.');
  expect(recogniserLine(model({ engines: null }))).toBeNull();
});

test.each([
  ['Echo (built in)', 'Echo', 'built in'],
  ['Echo, the built-in agent (it only repeats what it heard)', 'Echo', 'the built-in agent (it only repeats what it heard)'],
  ['OpenClaw', 'OpenClaw', ''],
  ['LM (Studio) 3', 'LM (Studio) 3', ''],
])('%s is called %s', (label, name, detail) => {
  expect(nameOf(label)).toEqual({ name, detail });
});
