import { beforeEach, describe, expect, it } from 'vitest';
import type { Admission, Refusal } from '../client/admission';
import { FakeRoom, FakeStore, FakeTimers } from '../client/fakes';
import { RoomClient } from '../client/room';
import { App } from './app';
import { banner } from './banner';
import { engines, FakeMicrophone, FakePlayer, settle } from './fakes';
import { helm } from './helm';
import { connectionWord } from './view';

let timers: FakeTimers;
let rooms: FakeRoom[];
let microphone: FakeMicrophone;
let app: App;
let admits: Admission | Refusal;

const room = (): FakeRoom => rooms.at(-1)!;
const talk = (): App['model']['value']['talk'] => app.model.value.talk;
const words = (): string | undefined => {
  const shown = banner(app.model.value, timers.now(), 0);
  return shown ? `${shown.strong} ${shown.text}`.trim() : undefined;
};

/** The page in a room, with its agent there. */
beforeEach(async () => {
  timers = new FakeTimers();
  rooms = [];
  microphone = new FakeMicrophone();
  admits = { url: 'ws://livekit', token: 't' };
  app = new App({
    location: { protocol: 'http:', host: 'gateway', search: '?turns=agent', hash: '' },
    setAddress: () => {},
    tabStorage: new FakeStore(),
    storage: null,
    save: () => {},
    timers,
    steady: () => timers.now(),
    random: () => 0.5,
    vibrate: () => {},
    fetchEngines: async () => engines,
    fetchAgents: async () => null,
    openMicrophone: microphone.open,
    inputDevices: async () => [],
    openPlayer: new FakePlayer().open,
    openSession: (options) =>
      new RoomClient({
        ...options,
        place: () => ({ room: 'harbour', identity: 'me', name: '' }),
        admit: async () => admits,
        summon: async () => {},
        join: async (admission, events) => {
          const joined = new FakeRoom(admission, events);
          joined.agent = { identity: 'agent', state: 'listening', detection: null, follow: null };
          rooms.push(joined);
          return joined;
        },
      }),
  });
  await app.start();
  await settle();
  timers.advance(300);
});

const turns = (): unknown[] => talk().turns.map(({ said, answer, cut, done }) => ({ said, answer, cut, done }));

async function hold(): Promise<void> {
  app.press();
  await settle();
  app.release();
  await settle();
  app.press();
  timers.advance(1000);
}

describe('the page in a room', () => {
  it('is in the room', () => {
    expect(connectionWord(app.model.value.connection)).toBe('In the room');
    expect([talk().sessionId, talk().phase, words()]).toEqual(['harbour', 'idle', undefined]);
    expect(helm(app.model.value).control.disabled).toBe(false);
  });

  it('has a turn: held, heard, answered', async () => {
    await hold();
    expect(room().done.at(-1)).toBe('unmute');
    room().userSays('how', false);
    expect(talk().partial).toBe('how');
    app.release();
    await settle();
    expect(room().done.at(-1)).toBe('mute');
    room().agentIs('thinking');
    room().userSays('how far', true);
    room().tell({ type: 'status', action: 'reading_file', detail: 'chart.md' });
    expect(talk().status).toMatchObject({ verb: 'Reading', detail: 'chart.md' });
    room().tell({ type: 'artifact', artifact_type: 'code', content: 'x' });
    room().agentSays('Three ');
    room().agentIs('speaking');
    room().agentSays('miles.');
    timers.advance(4999);
    expect(talk().status).not.toBeNull();
    timers.advance(1);
    expect(talk().status).toBeNull();
    room().agentSays(null);
    room().agentIs('listening');
    timers.advance(300);
    expect(turns()).toEqual([{ said: 'how far', answer: 'Three miles.', cut: null, done: true }]);
    expect([talk().phase, talk().inFlight, talk().status, talk().artifacts.length]).toEqual(['idle', null, null, 1]);
  });

  it('keeps the words and the answer of one turn together, in whatever order they come', async () => {
    await hold();
    app.release();
    await settle();
    room().agentIs('thinking');
    room().agentIs('speaking');
    room().agentIs('listening'); // the states have overtaken all of it
    room().userSays('how far', true);
    room().agentSays('Three miles.');
    room().agentSays(null);
    timers.advance(300);
    expect(turns()).toEqual([{ said: 'how far', answer: 'Three miles.', cut: null, done: true }]);
  });

  it('is interrupted by a hold', async () => {
    app.submit('a story');
    room().userSays('a story', true);
    room().agentIs('thinking');
    room().agentSays('Once ');
    room().agentIs('speaking');
    await hold();
    room().agentIs('listening');
    room().agentSays(null);
    room().userSays('stop', true);
    expect(turns()[0]).toEqual({ said: 'a story', answer: 'Once ', cut: 'interrupted', done: false });
    expect(turns()).toHaveLength(2);
  });

  it('stops an answer', () => {
    app.submit('a story');
    room().userSays('a story', true);
    room().agentIs('speaking');
    room().agentSays('Once ');
    expect(app.stop()).toBe(true);
    expect(room().done.at(-1)).toBe('agent.response.cancel {}');
    room().agentSays(null);
    room().agentIs('listening');
    timers.advance(300);
    expect(turns()).toEqual([{ said: 'a story', answer: 'Once ', cut: 'cancelled', done: false }]);
  });

  it('answers what the agent asks', () => {
    app.submit('clean up');
    room().userSays('clean up', true);
    room().agentIs('thinking');
    room().tell({ type: 'approval.request', seq: 1, ts: 1, payload: { approvalId: 'p', callId: 'c', name: 'bash', summary: 'rm', risk: 'high', expiresMs: 60000 } }, 'vela-events');
    expect(helm(app.model.value).title).toContain('waits for your answer');
    expect(app.answer('p', true, false)).toBe(true);
    expect(room().done.at(-1)).toBe('agent.approval.answer {"approvalId":"p","allow":true}');
  });

  it('keeps the last ten artifacts', () => {
    for (let i = 0; i < 12; i++) room().tell({ type: 'artifact', artifact_type: 'file', path: `${i}`, content: '' });
    expect(talk().artifacts.map((a) => a.title)).toEqual(['2', '3', '4', '5', '6', '7', '8', '9', '10', '11']);
  });

  it('begins a new conversation', async () => {
    app.submit('hello');
    room().userSays('hello', true);
    room().agentIs('thinking');
    room().agentIs('listening');
    timers.advance(300);
    app.newConversation();
    await settle();
    expect(room().done.at(-1)).toBe('agent.history.clear {}');
    expect(turns()).toEqual([]);
  });

  it('says that it waits, and goes on where it was', () => {
    app.submit('hello');
    room().userSays('hello', true);
    room().events.onReconnecting();
    expect([talk().kept, turns().length, helm(app.model.value).control.disabled]).toEqual([true, 1, true]);
    room().events.onReconnected();
    expect([talk().kept, talk().newSession, turns().length]).toEqual([false, false, 1]);
  });

  it('says "Live mode paused", and resumes when that is pressed', async () => {
    room().tell({ type: 'session_hold', reason: 'idle' });
    room().agentIs(null);
    expect(words()).toBe('Live mode paused — tap to resume');
    expect(helm(app.model.value).title).toBe('Live mode paused');
    const { action } = banner(app.model.value, timers.now(), 0)!;
    expect(action!.word).toBe('Resume');
    app.act(action!.does);
    await settle();
    expect([rooms.length, words()]).toEqual([2, undefined]);
  });

  it('says why it is out of the room', async () => {
    room().events.onLeft('lost');
    expect(banner(app.model.value, timers.now(), 0)).toMatchObject({ strong: 'Connection lost.', countdown: 'Trying again in 1 s.' });
    admits = { kind: 'none' };
    timers.advance(500);
    await settle();
    expect(words()).toBe('This gateway has no LiveKit server. Whoever runs it names one when it is started.');
    admits = { kind: 'sign in' };
    app.act('connect');
    await settle();
    expect(app.model.value.signIn).toBe('needed');
  });

  it('says what went wrong, also when the protocol has no word for it', () => {
    room().tell({ type: 'system_event', severity: 'error', title: 'Voice Degraded', message: 'Using backup voice' });
    expect(words()).toBe('Voice Degraded: Using backup voice.');
    room().tell({ type: 'system_event', severity: 'error', title: 'Agent timeout', message: '' });
    expect(words()).toContain('did not answer in time.');
  });
});
