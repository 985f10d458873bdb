import { beforeEach, describe, expect, it } from 'vitest';
import type { Admission, Refusal } from './admission';
import type { ConnectionStatus } from './connection';
import { FakeRoom, FakeTimers } from './fakes';
import { readFollow, RoomClient, RoomError, type Left, type Words } from './room';
import { base64 } from './base64';

const admission: Admission = { url: 'ws://livekit', token: 'jwt' };

let timers: FakeTimers;
let rooms: FakeRoom[];
let statuses: ConnectionStatus[];
let events: { type: string; payload: unknown }[];
let words: Words[];
let followed: (readonly string[] | null)[];
let summoned: number;
let caughtUp: number;
let admits: Admission | Refusal;
let joins: Left | null;
let agentAtOnce: string | null;
let room: RoomClient;
let place: { room: string; identity: string; name: string };

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};
const now = (): FakeRoom => rooms.at(-1)!;
const status = (): ConnectionStatus => statuses.at(-1)!;
const types = (): string[] => events.map((e) => e.type);

beforeEach(() => {
  timers = new FakeTimers();
  [rooms, statuses, events, words, followed] = [[], [], [], [], []];
  [summoned, caughtUp, admits, joins, agentAtOnce] = [0, 0, admission, null, 'listening'];
  place = { room: 'harbour', identity: 'me', name: '' };
  room = new RoomClient({
    timers,
    random: () => 0.5,
    place: () => place,
    admit: async () => admits,
    join: async (given, heard) => {
      if (joins) throw new RoomError(joins);
      const joined = new FakeRoom(given, heard);
      if (agentAtOnce !== null) joined.agent = { identity: 'agent', state: agentAtOnce, detection: null, follow: null };
      rooms.push(joined);
      return joined;
    },
    summon: async () => void summoned++,
    token: () => 'mine',
    settings: () => ({ turns: 'agent', interrupt: true, approvals: true }),
    onStatus: (s) => statuses.push(s),
    onEvent: (e) => events.push(e),
    onCaughtUp: () => caughtUp++,
    onWords: (w) => words.push(w),
    onFollow: (sources) => followed.push(sources),
  });
});

const enter = async (): Promise<void> => {
  room.connect();
  await settle();
};

it('reads who is followed, and nothing that is not that', () => {
  expect(['["a","b"]', '[]', '', undefined, '{"a":1}', '[1]', 'x'].map(readFollow)).toEqual([['a', 'b'], [], null, null, null, null, null]);
});

describe('a room with an agent in it', () => {
  beforeEach(enter);

  it('is a session', () => {
    expect(status()).toEqual({ state: 'connected', cause: null, retryAt: null, word: 'In the room' });
    expect(events[0]).toMatchObject({ type: 'session.ready', payload: { sessionId: 'harbour', recovered: false, interrupt: true } });
    expect(now().admission).toEqual(admission);
    expect(now().done).toEqual([
      'speak',
      'agent.session.start {"interrupt":true,"approvals":true}',
      'ganglia-events {"type":"tts-mode","value":"on"}',
    ]);
  });

  it('says what a user said, each update in place of the one before', () => {
    now().userSays('how', false);
    now().userSays('how far', false);
    now().userSays('how far is it', true);
    expect(events.slice(1)).toEqual([
      { type: 'transcript.partial', payload: { text: 'how' } },
      { type: 'transcript.partial', payload: { text: 'how far' } },
      { type: 'transcript.final', payload: { text: 'how far is it' } },
    ]);
    expect(words.at(-1)).toEqual({ role: 'user', segment: 'u1', text: 'how far is it', final: true });
  });

  it('says who it was, if it was somebody else', () => {
    now().userSays('and back', true, { identity: 'anna-1', name: 'Anna' });
    now().userSays('and on', true, { identity: 'ben-1', name: '' });
    expect(events.slice(1).map((e) => e.payload)).toEqual([{ text: 'Anna: and back' }, { text: 'ben-1: and on' }]);
  });

  it('says an answer piece by piece, and its end', () => {
    now().agentIs('thinking');
    now().agentSays('Three ');
    now().agentIs('speaking');
    now().agentSays('miles.');
    now().agentSays(null);
    now().agentIs('listening');
    timers.advance(300);
    expect(events.slice(1)).toEqual([
      { type: 'session.state', payload: { value: 'thinking' } },
      { type: 'response.created', payload: { responseId: 'a1', turnId: 'a1' } },
      { type: 'response.text.delta', payload: { text: 'Three ', responseId: 'a1' } },
      { type: 'session.state', payload: { value: 'speaking' } },
      { type: 'response.text.delta', payload: { text: 'miles.', responseId: 'a1' } },
      { type: 'response.completed', payload: { responseId: 'a1' } },
      { type: 'session.state', payload: { value: 'idle' } },
    ]);
    expect(words).toEqual([
      { role: 'agent', segment: 'a1', text: 'Three ', final: false },
      { role: 'agent', segment: 'a1', text: 'Three miles.', final: false },
      { role: 'agent', segment: 'a1', text: 'Three miles.', final: true },
    ]);
  });

  it('is idle behind the answer, whichever is here first', () => {
    now().agentIs('thinking');
    now().agentIs('listening'); // the state has overtaken the words
    now().agentSays('Three miles.');
    timers.advance(1900);
    expect(types()).not.toContain('response.completed');
    now().agentSays(null);
    timers.advance(300);
    expect(types().slice(-3)).toEqual(['response.text.delta', 'response.completed', 'session.state']);
  });

  it('does not wait for ever for the end of an answer', () => {
    now().agentIs('speaking');
    now().agentSays('Three');
    now().agentIs('listening');
    timers.advance(2000);
    expect(types().slice(-2)).toEqual(['response.completed', 'session.state']);
  });

  it('ends an answer where the next one begins', () => {
    now().agentSays('One');
    now().agentSays('Two', 'a2');
    expect(types().slice(-3)).toEqual(['response.completed', 'response.created', 'response.text.delta']);
  });

  it('says that an answer was talked over, or stopped', () => {
    now().agentSays('One');
    room.listen();
    now().agentSays(null);
    expect(events.at(-1)).toMatchObject({ type: 'response.cancelled', payload: { responseId: 'a1', reason: 'barge_in' } });
    now().agentSays('Two', 'a2');
    room.send({ type: 'response.cancel', payload: {} });
    now().agentSays(null, 'a2');
    expect(events.at(-1)).toMatchObject({ type: 'response.cancelled', payload: { responseId: 'a2', reason: 'client' } });
    expect(now().done.at(-1)).toBe('agent.response.cancel {}');
  });

  it('opens the microphone for a hold, and closes it behind', async () => {
    await room.publish({} as MediaStreamTrack);
    room.listen();
    expect(room.sendAudio()).toBe(true);
    expect(room.send({ type: 'input_audio.commit', payload: {} })).not.toBeNull();
    expect(now().done.slice(-3)).toEqual(['publish', 'unmute', 'mute']);
    room.listen();
    room.send({ type: 'input_audio.clear', payload: {} });
    expect(now().done.slice(-3)).toEqual(['unmute', 'mute', 'agent.input_audio.clear {}']);
  });

  it('leaves it open between turns, where the gateway finds their ends', async () => {
    await room.publish({} as MediaStreamTrack);
    room.send({ type: 'session.start', payload: { turnDetection: 'vad' } });
    await settle();
    expect(now().done.slice(-2)).toEqual(['agent.session.start {"turnDetection":"vad"}', 'unmute']);
    expect(events.at(-1)).toMatchObject({ type: 'session.ready', payload: { turnDetection: 'vad' } });
    room.send({ type: 'input_audio.commit', payload: {} });
    await room.publish({} as MediaStreamTrack);
    expect(now().done.slice(-2)).toEqual(['publish', 'unmute']);
    room.send({ type: 'session.start', payload: { turnDetection: 'none' } });
    await settle();
    expect(now().done.at(-1)).toBe('mute');
  });

  it('says whether the gateway can hear who speaks, and goes by it where somebody else changes that', async () => {
    const terms = (): object => events.findLast((e) => e.type === 'session.ready')!.payload as object;
    expect(terms()).toMatchObject({ turnDetection: 'none', features: [] });
    now().agentIs('listening', 'agent', 'none');
    expect(terms()).toMatchObject({ turnDetection: 'none', features: ['vad'] });
    await room.publish({} as MediaStreamTrack);
    room.listen();
    now().agentIs('listening', 'agent', 'vad'); // another phone wants it: this one goes on as it was
    expect(terms()).toMatchObject({ turnDetection: 'none' });
    expect(now().done.at(-1)).toBe('unmute');
    room.send({ type: 'session.start', payload: { turnDetection: 'vad' } });
    await settle();
    expect(terms()).toMatchObject({ turnDetection: 'vad' });
    now().agentIs('thinking', 'agent', 'vad');
    expect(now().done.at(-1)).not.toBe('mute');
    now().agentIs('thinking', 'agent', 'none'); // somebody switched it off: nobody would answer an open microphone
    expect(now().done.at(-1)).toBe('mute');
    expect(terms()).toMatchObject({ turnDetection: 'none', features: ['vad'] });
  });

  it('listens while somebody speaks by itself, and is idle behind a noise', async () => {
    await room.publish({} as MediaStreamTrack);
    room.send({ type: 'session.start', payload: { turnDetection: 'vad' } });
    await settle();
    timers.advance(300);
    const from = events.length;
    now().agentSays('One');
    now().userSays('', false);
    now().userSays('stop', false);
    now().agentSays(null);
    now().userSays('', true);
    timers.advance(300);
    expect(events.slice(from).map((e) => [e.type, (e.payload as { value?: string; text?: string }).value ?? (e.payload as { text?: string }).text])).toEqual([
      ['response.created', undefined],
      ['response.text.delta', 'One'],
      ['transcript.partial', ''],
      ['session.state', 'listening'],
      ['transcript.partial', 'stop'],
      ['response.cancelled', undefined],
      ['transcript.final', ''],
      ['session.state', 'idle'],
    ]);
  });

  it('has other agents followed, and says who is, whoever wanted it', async () => {
    now().answer = '{"sources":[{"id":"local:claude-code","name":"Claude Code","here":true},{"id":"gone"},{"name":"no id"},7]}';
    expect(await room.sources()).toEqual([
      { id: 'local:claude-code', name: 'Claude Code', here: true },
      { id: 'gone', name: 'gone', here: false },
    ]);
    expect(now().done.at(-1)).toBe('agent.sources.get {}');
    now().answer = 'nonsense';
    expect(await room.sources()).toEqual([]);
    expect(await room.follow(['local:claude-code'])).toBe('');
    expect(now().done.at(-1)).toBe('agent.session.start {"follow":["local:claude-code"]}');
    now().agentIs('listening', 'agent', null, ['local:claude-code']);
    expect(followed).toEqual([null, ['local:claude-code']]);
    now().refusal = { data: 'unsupported', message: 'Your token does not let you.' };
    expect(await room.follow([])).toBe('Your token does not let you.');
    now().refusal = new Error('no answer');
    expect([await room.follow([]), await room.sources()]).toEqual(['The agent did not answer. Try again in a moment.', []]);
    room.disconnect();
    expect(followed.at(-1)).toBeNull();
    expect([await room.follow([]), await room.sources()]).toEqual(['The agent did not answer. Try again in a moment.', []]);
  });

  it('tells the conversation as the agent knows it', async () => {
    now().answer = '{"items":[{"role":"user","text":"How far?","at":1}]}';
    room.send({ type: 'history.get', payload: {} });
    await settle();
    expect(events.at(-1)).toMatchObject({ type: 'history', payload: { items: [{ role: 'user', text: 'How far?' }] } });
    now().answer = 'nonsense';
    room.send({ type: 'history.get', payload: {} });
    await settle();
    expect(events.at(-1)).toMatchObject({ type: 'history', payload: { items: [{ text: 'How far?' }] } });
  });

  it('writes on lk.chat', () => {
    room.send({ type: 'input_text.submit', payload: { text: 'How far?' } });
    expect(now().done.at(-1)).toBe('chat How far?');
  });

  it('calls what an agent offers, by the names of the protocol', async () => {
    room.send({ type: 'approval.answer', payload: { approvalId: 'p1', allow: true } });
    room.send({ type: 'session.start', payload: { agent: 'claude' } });
    room.send({ type: 'session.start', payload: { audio: { output: { encoding: 'pcm16', rate: 24000, framing: 'json' } } } });
    room.send({ type: 'history.clear', payload: {} });
    room.send({ type: 'playback.ack', payload: { responseId: 'a', playedMs: 1 } });
    expect(now().done.slice(3)).toEqual([
      'agent.approval.answer {"approvalId":"p1","allow":true}',
      'agent.session.start {"agent":"claude"}',
      'agent.history.clear {}',
    ]);
    await settle();
    expect(events.slice(1)).toMatchObject([
      { type: 'session.ready', payload: {} }, // the one about sound, of which no agent is told
      { type: 'session.ready', payload: { agent: 'claude' } },
      { type: 'history', payload: { items: [] } },
    ]);
  });

  it('tells what the agent does not take', async () => {
    now().refusal = { data: 'agent_unavailable', message: 'It is not there.' };
    const asked = room.send({ type: 'session.start', payload: { agent: 'claude' } });
    await settle();
    now().refusal = { data: 'x', message: 'timeout at 10.0.0.1' };
    const cleared = room.send({ type: 'history.clear', payload: {} });
    await settle();
    expect(events.slice(1)).toEqual([
      { type: 'error', payload: { code: 'agent_unavailable', message: 'It is not there.', ref: asked } },
      { type: 'error', payload: { code: 'internal', message: '', ref: cleared } },
    ]);
  });

  it('shows status and artifacts, also in chunks', () => {
    const status = { type: 'status', action: 'reading_file', detail: 'a.go' };
    now().tell(status);
    const artifact = { type: 'artifact', artifact_type: 'diff', file: 'a.go', diff: '+x\n'.repeat(40_000) };
    const bytes = new TextEncoder().encode(JSON.stringify(artifact));
    const size = 10_000;
    const total = Math.ceil(bytes.length / size);
    for (let i = total - 1; i >= 0; i--) {
      now().tell({ type: 'chunk', transfer_id: 't', chunk_index: i, total_chunks: total, data: base64(bytes.subarray(i * size, (i + 1) * size)) });
    }
    expect(events.slice(1)).toEqual([
      { type: 'status', payload: status },
      { type: 'artifact', payload: artifact },
    ]);
  });

  it('forgets half of an object with its room', async () => {
    const half = (i: number): object => ({ type: 'chunk', transfer_id: 't', chunk_index: i, total_chunks: 2, data: 'IiI=' });
    now().tell(half(0));
    now().events.onLeft('lost');
    timers.advance(500);
    await settle();
    now().tell({ type: 'chunk', transfer_id: 't', chunk_index: 0, total_chunks: 1, data: btoa('{"type":"status","action":"thinking"}') });
    expect(events.at(-1)).toMatchObject({ type: 'status' });
  });

  it('takes the questions of the protocol as they are, and nothing else of it', () => {
    const question = { type: 'approval.request', seq: 4, ts: 9, payload: { approvalId: 'p', callId: 'c', name: 'bash', summary: 'ls', risk: 'high', expiresMs: 60000 } };
    now().tell(question, 'vela-events');
    now().tell({ type: 'session.ended', seq: 5, payload: { reason: 'client' } }, 'vela-events');
    now().tell({ type: 'approval.request', payload: {} }, 'vela-events');
    expect(events.slice(1)).toEqual([question]);
  });

  it('believes nobody but the agent', () => {
    now().tell({ type: 'status', action: 'thinking' }, 'ganglia-events', 'anna');
    now().tell({ type: 'status', action: 'thinking' }, 'other');
    now().tell([1], 'ganglia-events');
    expect(types()).toEqual(['session.ready']);
  });

  it('says what went wrong in the words of the room', () => {
    now().tell({ type: 'system_event', severity: 'error', title: 'Agent timeout', message: 'It did not answer.' });
    now().tell({ type: 'system_event', severity: 'error', title: 'Voice Degraded', message: 'Using backup voice.' });
    now().tell({ type: 'system_event', severity: 'success', title: 'Voice Restored', message: '' });
    expect(events.slice(1)).toEqual([
      { type: 'error', payload: { code: 'agent_timeout', message: 'It did not answer.' } },
      { type: 'error', payload: { code: 'said', message: 'Voice Degraded: Using backup voice.' } },
    ]);
  });

  it('is quiet where answers are not to be heard', () => {
    room.speak(false);
    expect(now().done.slice(-2)).toEqual(['hush', 'ganglia-events {"type":"tts-mode","value":"off"}']);
  });

  it('pauses when the agent leaves for want of a word, and comes back when asked', async () => {
    now().tell({ type: 'session_hold', reason: 'idle' });
    now().agentIs(null);
    expect(status()).toMatchObject({ state: 'disconnected', cause: { strong: 'Live mode paused', text: '— tap to resume', again: 'Resume' }, keptUntil: Infinity });
    expect(now().done.at(-1)).toBe('leave');
    await enter();
    expect(rooms).toHaveLength(2);
    expect(events.at(-1)).toMatchObject({ type: 'session.ready', payload: { recovered: true } });
    expect(caughtUp).toBe(1);
  });

  it('keeps the conversation when the agent goes, and asks for another', async () => {
    now().agentSays('One');
    now().agentIs(null);
    expect(status()).toMatchObject({ state: 'connecting', cause: { strong: 'The agent has left the room.' }, keptUntil: Infinity });
    expect(room.send({ type: 'response.cancel', payload: {} })).toBeNull();
    timers.advance(2000);
    expect(summoned).toBe(1);
    now().agentIs('listening', 'agent-2');
    expect(status().state).toBe('connected');
    expect(events.at(-1)).toMatchObject({ type: 'session.ready', payload: { recovered: true } });
    timers.advance(60_000);
    expect([summoned, rooms.length]).toEqual([1, 1]);
  });

  it('is joined again when it is lost', async () => {
    now().events.onLeft('lost');
    expect(status()).toMatchObject({ state: 'disconnected', cause: { code: 1006 }, keptUntil: Infinity });
    expect(status().retryAt).toBe(timers.now() + 500);
    admits = { kind: 'gone' };
    timers.advance(500);
    await settle();
    expect(status().retryAt).toBe(timers.now() + 1000);
    admits = admission;
    joins = 'unreachable';
    timers.advance(1000);
    await settle();
    expect(status().retryAt).toBe(timers.now() + 2000);
    joins = null;
    room.tryNow();
    await settle();
    expect(status().state).toBe('connected');
    expect(caughtUp).toBe(1);
    const before = events.length;
    rooms[0]!.userSays('late', true);
    rooms[0]!.events.onLeft('removed');
    expect([events.length, status().state]).toEqual([before, 'connected']);
  });

  it('says that the connection is made again', () => {
    now().events.onReconnecting();
    expect(status()).toMatchObject({ state: 'connecting', keptUntil: Infinity });
    now().events.onReconnected();
    expect(status().state).toBe('connected');
    now().events.onReconnecting();
    now().agent = null;
    now().events.onReconnected();
    expect(status()).toMatchObject({ state: 'connecting', cause: { strong: 'The agent has left the room.' } });
  });

  it('says why it is not joined again', async () => {
    for (const [why, strong] of [
      ['elsewhere', 'This went on in another window.'],
      ['removed', 'You were taken out of the room.'],
      ['closed', 'The room was closed.'],
    ] as const) {
      now().events.onLeft(why);
      expect(status()).toMatchObject({ state: 'error', cause: { strong } });
      timers.advance(60_000);
      await enter();
    }
    expect(rooms).toHaveLength(4);
  });

  it('is left for good', async () => {
    room.disconnect();
    expect(now().done.slice(-2)).toEqual(['ganglia-events {"type":"end_voice_session"}', 'leave']);
    expect(status()).toEqual({ state: 'not connected', cause: null, retryAt: null });
    now().agentIs('speaking');
    now().userSays('late', true);
    now().events.onLeft('lost');
    expect(types()).toEqual(['session.ready']);
    timers.advance(600_000);
    await settle();
    expect(rooms).toHaveLength(1);
    expect(timers.waiting).toBe(0);
  });

  it('carries the microphone into the next room', async () => {
    await room.publish({} as MediaStreamTrack);
    now().events.onLeft('lost');
    timers.advance(500);
    await settle();
    expect(now().done).toContain('publish');
  });
});

describe('a room without an agent', () => {
  beforeEach(async () => {
    agentAtOnce = null;
    await enter();
  });

  it('waits, asks for one, and says when none comes', () => {
    expect(status()).toEqual({ state: 'connecting', cause: null, retryAt: null });
    timers.advance(1999);
    expect(summoned).toBe(0);
    timers.advance(1);
    expect(summoned).toBe(1);
    timers.advance(10_000);
    expect(status()).toMatchObject({ state: 'connecting', cause: { strong: 'No agent comes into this room.', again: 'Ask again' } });
    room.connect();
    expect([summoned, rooms.length]).toEqual([2, 1]);
    now().agentIs('initializing');
    expect(status().state).toBe('connected');
    expect(types()).toEqual(['session.ready']);
  });
});

describe('a room that is not to be had', () => {
  it.each<[Refusal | Left, object]>([
    [{ kind: 'sign in' }, { state: 'disconnected', cause: { kind: 'closed', code: 4001 } }],
    [{ kind: 'none' }, { state: 'error', cause: { strong: 'This gateway has no LiveKit server.' } }],
    [{ kind: 'refused', words: 'Not this room.' }, { state: 'error', cause: { strong: 'The gateway did not let you into this room.', text: 'Not this room.' } }],
    [{ kind: 'gone' }, { state: 'error', cause: { strong: 'The gateway cannot be reached.' } }],
    ['refused', { state: 'error', cause: { strong: 'The LiveKit server did not take the token.' } }],
    ['unreachable', { state: 'error', cause: { strong: 'The LiveKit server cannot be reached.' } }],
  ])('%j', async (why, expected) => {
    if (typeof why === 'string') joins = why;
    else admits = why;
    await enter();
    expect(status()).toMatchObject({ ...expected, retryAt: null });
    expect(timers.waiting).toBe(0);
    joins = null;
    admits = admission;
    await enter();
    expect(status().state).toBe('connected');
  });

  it('is not joined by whoever has gone meanwhile', async () => {
    room.connect();
    room.disconnect();
    await settle();
    expect(rooms).toHaveLength(0);
    expect(status().state).toBe('not connected');
  });
});
