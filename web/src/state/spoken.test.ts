import { expect, test } from 'vitest';
import { base64 } from '../client/base64';
import { FakeStore } from '../client/fakes';
import { bench, engines, openMicrophone, settle, type Bench, type BenchOptions } from './fakes';
import { voiceChoice } from './choice';
import { helm } from './helm';
import { voiceLine } from './view';

const flite = { name: 'flite', label: 'Flite, US English', available: true, why: '', better: '' };
const output = { encoding: 'pcm16', rate: 24000, framing: 'json' };
const input = { encoding: 'pcm16', rate: 16000, framing: 'binary' };

const answer = 'One two three four.';
const words = ['One', ' two', ' three', ' four.'];
const chunk = base64(new Uint8Array(1920));

/** A page in a session with sound. */
async function spoken(options: BenchOptions = {}): Promise<Bench> {
  const b = await bench({ turns: 'agent', engines: { ...engines, voices: [flite] }, greet: false, ...options });
  b.socket().greet('session-1', { audio: { input, output } });
  return b;
}

/** The answer, up to so much of its sound: a word begins in each third piece of 40 ms. */
function begin(b: Bench, ms = 320): void {
  b.app.submit('count');
  b.socket().say('transcript.final', { text: 'count' });
  b.socket().say('session.state', { value: 'thinking' });
  b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
  b.socket().say('session.state', { value: 'speaking' });
  b.socket().say('response.text.delta', { text: answer, responseId: 'r1' });
  sound(b, 0, ms);
}

function sound(b: Bench, from: number, to: number): void {
  for (let ms = from; ms < to; ms += 40) b.socket().say('response.audio.delta', { responseId: 'r1', chunk, startMs: ms, text: ms % 120 === 0 ? (words[ms / 120] ?? '') : '' });
}

const last = (b: Bench) => b.app.model.value.talk.turns.at(-1)!;
const heard = (b: Bench): string => last(b).answer.slice(0, last(b).sound?.heard);
const acks = (b: Bench) => b.socket().sent.filter((m) => m.type === 'playback.ack').map((m) => m.payload);
const told = (b: Bench): string[] => b.app.announcements.value.map((a) => a.text);

test('a session is asked for sound where the gateway has a voice and the setting is on', async () => {
  const asked = async (options: BenchOptions) => {
    const b = await spoken(options);
    return b.socket().sent[0]!.payload.audio;
  };
  expect(await asked({})).toEqual({ input, output });
  expect(await asked({ engines })).toEqual({ input });
  expect(await asked({ engines: { ...engines, voices: [{ ...flite, available: false }] } })).toEqual({ input });
  expect(await asked({ engines: null, search: '?turns=agent' })).toEqual({ input });
  expect(await asked({ stored: new Map([['vela.speak', 'no']]) })).toEqual({ input });
});

test('another voice: asked for between turns, shown when the gateway has it, and kept for the next visit', async () => {
  const voices = [flite, { ...flite, name: 'deep', label: 'Deep' }, { ...flite, name: 'gone', label: 'Gone', available: false }];
  const b = await spoken({ engines: { ...engines, voices } });
  expect(voiceChoice(b.app.model.value)).toMatchObject({ present: 'flite', voices: voices.slice(0, 2), off: '' });
  b.app.chooseVoice('deep');
  expect(b.socket().sent.at(-1)).toMatchObject({ type: 'session.start', payload: { voice: 'deep' } });
  expect(voiceLine(b.app.model.value)).toMatch(/^Spoken by Flite/);
  b.socket().greet('session-1', { audio: { input, output }, voice: 'deep' });
  expect(voiceLine(b.app.model.value)).toBe('Spoken by Deep.');
  expect(b.stored.get('vela.voice')).toBe('deep');
  begin(b);
  expect(voiceChoice(b.app.model.value)!.off).toBe('Off during a turn.');
  const { length } = b.socket().sent;
  b.app.chooseVoice('flite');
  expect([b.socket().sent.length, b.stored.get('vela.voice')]).toEqual([length, 'deep']);

  const next = async (name: string) => (await spoken({ engines: { ...engines, voices }, stored: new Map([['vela.voice', name]]) })).socket().sent[0]!.payload.voice;
  expect([await next('deep'), await next('gone'), await next('')]).toEqual(['deep', undefined, undefined]);
  expect(voiceChoice((await spoken()).app.model.value)).toBeNull();
});

test('ink follows what is played, and what was spoken is not read out', async () => {
  const b = await spoken();
  begin(b);
  expect(heard(b)).toBe('');
  expect(helm(b.app.model.value).control.ring).toBe('level');
  b.player.play(200);
  expect(heard(b)).toBe('One');
  expect(acks(b)).toEqual([{ responseId: 'r1', playedMs: 200 }]);
  sound(b, 320, 480);
  b.player.play(480);
  b.socket().say('response.completed', { responseId: 'r1', heardText: answer });
  b.socket().say('session.state', { value: 'idle' });
  expect(heard(b)).toBe(answer);
  expect(told(b).some((t) => t.includes(answer))).toBe(false);
});

test('a phrase for a silence is played before the answer, and no word of it is heard by that', async () => {
  const b = await spoken();
  b.app.submit('count');
  b.socket().say('transcript.final', { text: 'count' });
  b.socket().say('session.state', { value: 'thinking' });
  b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
  for (const startMs of [0, 40, 80]) b.socket().say('response.audio.delta', { responseId: 'r1', chunk, startMs, text: '', filler: true });
  b.player.play(120);
  expect(acks(b)).toEqual([{ responseId: 'r1', playedMs: 120 }]);
  b.socket().say('session.state', { value: 'speaking' });
  b.socket().say('response.text.delta', { text: answer, responseId: 'r1' });
  for (let ms = 0; ms < 320; ms += 40) b.socket().say('response.audio.delta', { responseId: 'r1', chunk, startMs: 120 + ms, text: ms % 120 === 0 ? words[ms / 120]! : '' });
  expect(b.player.pushed.map(({ at }) => at / 24)).toEqual([0, 40, 80, 120, 160, 200, 240, 280, 320, 360, 400]);
  b.player.play(200);
  expect(heard(b)).toBe('');
  b.player.play(320);
  expect(heard(b)).toBe('One');
});

test('an answer that is not spoken is all ink, and is read out', async () => {
  const b = await spoken({ stored: new Map([['vela.speak', 'no']]) });
  begin(b);
  expect(last(b).sound).toBeNull();
  expect(b.player.pushed).toEqual([]);
  expect(acks(b).at(-1)).toEqual({ responseId: 'r1', playedMs: 320 });
  b.socket().say('response.completed', { responseId: 'r1', heardText: answer });
  expect(told(b)).toContain(`Echo: ${answer}`);
});

test('stop: silence first, then the cancel with what was played; what comes late is not played', async () => {
  const b = await spoken();
  begin(b);
  b.player.play(200);
  b.player.rendered = 290;
  b.app.stop();
  expect(b.player.cuts).toBe(1);
  expect(b.socket().types).not.toContain('response.cancel');
  await settle();
  expect(b.socket().sent.at(-1)).toMatchObject({ type: 'response.cancel', payload: { responseId: 'r1', playedMs: 290 } });
  const { length } = b.player.pushed;
  sound(b, 320, 400);
  expect(b.player.pushed.length).toBe(length);
  b.socket().say('response.cancelled', { responseId: 'r1', reason: 'client', heardText: 'One two', playedMs: 290 });
  b.socket().say('session.state', { value: 'idle' });
  expect([last(b).cut, heard(b), last(b).sound!.playedMs]).toEqual(['cancelled', 'One two', 290]);
});

test('a hold: the player is empty before anything is appended; then the gateway hears how much was played', async () => {
  const b = await spoken();
  await openMicrophone(b);
  begin(b);
  b.player.play(200);
  b.player.rendered = 290;
  b.app.press();
  expect(b.player.cuts).toBe(1);
  expect(b.socket().types).not.toContain('audio');
  b.microphone.hear(1, 2);
  await settle();
  expect(b.socket().sent.slice(-2).map((m) => m.type)).toEqual(['audio', 'playback.ack']);
  expect(acks(b).at(-1)).toEqual({ responseId: 'r1', playedMs: 290 });
  b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: 'One', playedMs: 200 });
  b.socket().say('session.state', { value: 'listening' });
  expect([last(b).cut, heard(b), last(b).sound!.playedMs]).toEqual(['interrupted', 'One two', 290]);
});

test('a hold so short that nothing was appended ends the answer all the same: it has fallen silent', async () => {
  const b = await spoken();
  await openMicrophone(b);
  begin(b);
  b.player.play(200);
  b.app.press();
  await settle();
  b.app.release();
  await settle();
  expect(b.socket().sent.at(-1)).toMatchObject({ type: 'response.cancel', payload: { responseId: 'r1', playedMs: 200 } });
});

test('typed words over an answer: the same', async () => {
  const b = await spoken();
  begin(b);
  b.player.play(200);
  b.app.submit('stop');
  expect(b.player.cuts).toBe(1);
  await settle();
  expect(b.socket().types.slice(-2)).toEqual(['input_text.submit', 'playback.ack']);
});

test('a stop that did not reach the gateway is said again when the session is resumed', async () => {
  const b = await spoken();
  begin(b);
  b.player.play(200);
  const { seq } = b.socket();
  b.app.stop();
  b.socket().end(1006);
  await settle();
  b.timers.advance(15_000);
  b.socket().welcome(seq);
  expect(b.socket().sent.at(-1)).toMatchObject({ type: 'response.cancel', payload: { responseId: 'r1', playedMs: 200 } });
});

test('a lost connection does not silence what is there; the gateway hears of it when it is back', async () => {
  const b = await spoken();
  begin(b);
  const { seq } = b.socket();
  b.socket().end(1006);
  b.player.play(320);
  expect(b.player.cuts).toBe(0);
  b.timers.advance(15_000);
  b.socket().welcome(seq);
  expect(acks(b)).toEqual([{ responseId: 'r1', playedMs: 320 }]);
  sound(b, 320, 360);
  expect(b.player.pushed.at(-1)).toEqual({ at: 320 * 24, length: 960 });
});

test('a page that is loaded again goes on where the other one stopped', async () => {
  const tab = new FakeStore();
  const first = await spoken({ tab });
  begin(first);
  first.player.play(200);
  first.app.leaving();
  const b = await bench({ turns: 'agent', engines: { ...engines, voices: [flite] }, greet: false, tab });
  const socket = b.socket();
  socket.open();
  socket.say('session.ready', { ...terms, lastSeq: 14 });
  const events = first.socket();
  expect(events.seq).toBe(14);
  socket.say('session.state', { value: 'idle' });
  begin(b);
  expect(b.player.pushed[0]).toEqual({ at: 200 * 24, length: 960 });
  expect(b.player.pushed.at(-1)).toEqual({ at: 280 * 24, length: 960 });
  expect(acks(b)).toEqual([{ responseId: 'r1', playedMs: 200 }]);
});

test('sound that was played comes again without itself: a page that is loaded again marks its words and plays the rest', async () => {
  const tab = new FakeStore();
  const first = await spoken({ tab });
  begin(first);
  first.player.play(200);
  first.app.leaving();
  const b = await bench({ turns: 'agent', engines: { ...engines, voices: [flite] }, greet: false, tab });
  const socket = b.socket();
  socket.open();
  socket.say('session.ready', { ...terms, lastSeq: 14 });
  socket.say('session.state', { value: 'idle' });
  begin(b, 0);
  for (let ms = 0; ms < 320; ms += 40) {
    const text = ms % 120 === 0 ? words[ms / 120]! : '';
    socket.say('response.audio.delta', { responseId: 'r1', chunk: ms < 200 ? '' : chunk, startMs: ms, text });
  }
  expect(b.player.pushed[0]).toEqual({ at: 200 * 24, length: 960 });
  expect(b.player.pushed).toHaveLength(3);
  b.player.play(300);
  expect(heard(b)).toBe('One two');
});

const terms = {
  sessionId: 'session-1',
  protocol: 2,
  resumed: true,
  recovered: true,
  resumeToken: 'token',
  resumeWindowMs: 120_000,
  turns: 'agent',
  agent: 'echo',
  audio: { input, output },
  turnDetection: 'none',
  interrupt: true,
  approvals: false,
  room: '',
  features: [],
};

test('switched on in a session without sound: it is asked for between turns, once', async () => {
  const b = await bench({ turns: 'agent', engines: { ...engines, voices: [flite] }, stored: new Map([['vela.speak', 'no']]) });
  b.app.submit('x');
  b.app.change({ speak: true });
  expect(b.socket().asked).toEqual(['input_text.submit']);
  b.socket().say('transcript.final', { text: 'x' });
  b.socket().say('session.state', { value: 'thinking' });
  b.socket().say('session.state', { value: 'idle' });
  b.socket().say('session.state', { value: 'idle' });
  expect(b.socket().asked).toEqual(['input_text.submit', 'session.start']);
  expect(b.socket().sent.at(-1)!.payload).toEqual({ audio: { output } });
  expect(b.stored.get('vela.speak')).toBe('yes');
});

test('where the browser lets no sound out, the helm says how to hear it', async () => {
  const b = await spoken();
  begin(b);
  b.player.events!.onBlocked(true);
  expect(helm(b.app.model.value).small).toBe('Press anywhere to hear the answer');
  b.app.pressed();
  expect(b.player.woken).toBe(1);
  b.player.events!.onBlocked(false);
  expect(helm(b.app.model.value).small).toBe('Hold to interrupt');
});

test('nothing is opened before a press where no sound is wanted', async () => {
  const b = await bench({ turns: 'agent' });
  b.app.pressed();
  expect(b.player.woken).toBe(0);
});
