import { describe, expect, test } from 'vitest';
import { base64 } from '../client/base64';
import { stages } from '../page/Waterfall';
import { bench, chunk, engines, settle, type Bench, type BenchOptions } from './fakes';
import { listening } from './handsfree';
import { helm } from './helm';

const features = ['text', 'audio_in', 'resume', 'history', 'vad', 'audio_out'];
const flite = { name: 'flite', label: 'Flite', available: true, why: '', better: '' };
const piece = base64(new Uint8Array(1920)); // 40 ms

const terms = {
  sessionId: 'session-1',
  protocol: 2,
  resumed: false,
  recovered: false,
  resumeToken: 'token',
  resumeWindowMs: 120_000,
  lastSeq: 0,
  turns: 'agent',
  agent: 'echo',
  audio: { input: { encoding: 'pcm16', rate: 16000, framing: 'binary' }, output: { encoding: 'pcm16', rate: 24000, framing: 'json' } },
  turnDetection: 'none',
  interrupt: true,
  approvals: false,
  room: '',
  features,
};

const talk = (b: Bench) => b.app.model.value.talk;
const view = (b: Bench) => helm(b.app.model.value);
const ears = (b: Bench) => listening(b.app.model.value);
const sound = (b: Bench) => b.socket().sent.filter((e) => e.type === 'audio').map((e) => e.payload.bytes);
const told = (b: Bench) => b.app.announcements.value.map(({ text }) => text);

/** The gateway takes what it was asked for. */
function agree(b: Bench, change: Record<string, unknown> = {}): void {
  const { payload } = b.socket().sent.findLast((m) => m.type === 'session.start')!;
  b.socket().say('session.ready', { ...terms, turnDetection: payload.turnDetection ?? 'none', ...change });
  b.socket().say('session.state', { value: 'idle' });
}

/** A page before a gateway that can hear where speech begins and ends. */
async function there(options: BenchOptions = {}): Promise<Bench> {
  const b = await bench({ turns: 'agent', engines: { ...engines, voices: [flite] }, greet: false, ...options });
  b.socket().greet('session-1', { ...terms });
  return b;
}

/** Whose user has switched it on. */
async function live(options: BenchOptions = {}): Promise<Bench> {
  const b = await there(options);
  b.app.change({ handsFree: true });
  await settle();
  agree(b);
  expect(ears(b)).toBe('live');
  return b;
}

/** A short press of the control. */
function tap(b: Bench): void {
  b.app.press();
  b.timers.advance(100);
  b.app.release();
}

/** Somebody asks, and the answer sounds. */
function answering(b: Bench, words = 'what is it'): void {
  const socket = b.socket();
  socket.say('session.state', { value: 'listening' });
  socket.say('transcript.partial', { text: words });
  socket.say('transcript.final', { text: words });
  socket.say('session.state', { value: 'thinking' });
  socket.say('response.created', { responseId: 'r1', turnId: 't1' });
  socket.say('session.state', { value: 'speaking' });
  socket.say('response.text.delta', { responseId: 'r1', text: 'One two three four.' });
  for (const [i, text] of ['One', ' two', ' three', ' four.'].entries()) {
    socket.say('response.audio.delta', { responseId: 'r1', chunk: piece, startMs: i * 40, text });
  }
}

/** The gateway takes the session up again, with nothing missed. */
function resumed(b: Bench, seq: number): void {
  b.socket().open();
  b.socket().seq = seq;
  b.socket().say('session.ready', { ...terms, resumed: true, recovered: true, turnDetection: 'vad', lastSeq: seq });
}

describe('the switch', () => {
  test('opens the microphone, asks for detection, and sends nothing before that is in force', async () => {
    const b = await there();
    b.app.change({ handsFree: true });
    await settle();
    expect(b.microphone.opened).toEqual(['']);
    b.microphone.hear(9, 9);
    expect(b.socket().asked).toEqual(['session.start']);
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad' });
    expect(view(b).title).toBe('One moment');
    agree(b);
    b.microphone.hear(1, 2);
    b.microphone.hear(3, 4);
    expect(sound(b)).toEqual([[1, 2], [3, 4]]);
    expect(view(b)).toMatchObject({
      title: 'Just talk',
      live: true,
      control: { label: 'Pause listening', pressed: false, ring: 'level', disabled: false },
      handsFree: { on: true },
    });
    expect(b.stored.get('vela.handsFree')).toBe('yes');
    expect(b.socket().types).not.toContain('input_audio.commit');
  });

  test('how readily it hears and when a silence ends a turn: asked for once, taken back, and kept by a session that is resumed', async () => {
    const b = await live();
    const asked = () => b.socket().sent.filter((m) => m.type === 'session.start').length;
    b.app.change({ sensitivity: 'low' });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad', vad: { threshold: 0.7 } });
    agree(b, { vad: { threshold: 0.7, speechMs: 200, silenceMs: 600 } });
    b.app.change({ pause: 'long' });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad', vad: { threshold: 0.7, silenceMs: 1200 } });
    agree(b, { vad: { threshold: 0.7, speechMs: 200, silenceMs: 1200 } });
    const before = asked();
    b.app.change({ pause: 'long' });
    expect(asked()).toBe(before);
    expect([b.stored.get('vela.sensitivity'), b.stored.get('vela.pause')]).toEqual(['low', 'long']);
    b.app.change({ sensitivity: 'usual' });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad', vad: { silenceMs: 1200 } });
    agree(b, { vad: { threshold: 0.4, speechMs: 200, silenceMs: 1200 } }); // the operator's own
    b.app.change({ pause: 'usual' });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad' });
    agree(b, { vad: { threshold: 0.4, speechMs: 200, silenceMs: 600 } });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad' });
  });

  test('where nothing listens by itself, how it would hear is asked for with the switch', async () => {
    const b = await there();
    const asked = () => b.socket().sent.filter((m) => m.type === 'session.start').length;
    const before = asked();
    b.app.change({ sensitivity: 'high', pause: 'short' });
    expect(asked()).toBe(before);
    b.app.change({ handsFree: true });
    await settle();
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad', vad: { threshold: 0.35, silenceMs: 400 } });
    agree(b, { vad: { threshold: 0.35, speechMs: 200, silenceMs: 400 } });
    expect(asked()).toBe(before + 1);
  });

  test('off again: nothing more is sent, and the control is to be held', async () => {
    const b = await live();
    b.app.change({ handsFree: false });
    b.microphone.hear(1, 2);
    expect(sound(b)).toEqual([]);
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'session.start', payload: { turnDetection: 'none' } });
    agree(b);
    expect(view(b)).toMatchObject({ title: 'Hold to talk', live: false, control: { label: 'Hold to talk' }, handsFree: { on: false } });
    b.timers.advance(30_000);
    expect(b.microphone.closed).toBe(1);
    expect(told(b).slice(-2)).toEqual(['Just talk. The microphone is open.', 'Hold to talk']);
  });

  test('during an answer: detection is asked for when it is over', async () => {
    const b = await there();
    b.app.submit('x');
    b.socket().say('transcript.final', { text: 'x' });
    b.socket().say('session.state', { value: 'thinking' });
    b.app.change({ handsFree: true });
    await settle();
    b.microphone.hear(1, 2);
    expect(b.socket().asked).toEqual(['input_text.submit']);
    expect(sound(b)).toEqual([]);
    b.socket().say('session.state', { value: 'idle' });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad' });
  });

  test('asked for when a turn had just begun: asked for once more after it, without a word', async () => {
    const b = await there();
    b.app.change({ handsFree: true });
    await settle();
    b.socket().say('error', { code: 'turn_in_flight', message: 'x', retryable: true, ref: b.socket().sent.at(-1)!.id });
    expect(talk(b).failure).toBeNull();
    b.socket().say('session.state', { value: 'idle' });
    expect(b.socket().asked).toEqual(['session.start', 'session.start']);
  });

  test('refused: it springs back, and says why', async () => {
    const b = await there();
    b.app.change({ handsFree: true });
    await settle();
    b.socket().say('error', { code: 'unsupported', message: 'x', retryable: false, ref: b.socket().sent.at(-1)!.id });
    expect(b.app.settings.value.handsFree).toBe(false);
    expect(talk(b).failure?.code).toBe('unsupported');
    expect(ears(b)).toBe('off');
    expect(b.socket().asked.length).toBe(1);
  });

  test('a gateway that cannot: it is off and says so, nothing is asked, and the control is to be held', async () => {
    const b = await bench({ turns: 'agent', stored: new Map([['vela.handsFree', 'yes']]) });
    expect(view(b)).toMatchObject({
      title: 'Hold to talk',
      handsFree: { on: false, disabled: true, why: 'Off: this gateway cannot hear where speech begins and ends.' },
    });
    expect(b.socket().asked).toEqual([]);
    expect(b.microphone.opened).toEqual([]);
  });

  test('remembered: the microphone of a page that was loaded again waits for a press', async () => {
    const b = await there({ stored: new Map([['vela.handsFree', 'yes']]) });
    agree(b);
    expect(b.microphone.opened).toEqual([]);
    expect(view(b)).toMatchObject({ title: 'Press once, then just talk', control: { label: 'Open the microphone', pressed: undefined } });
    b.app.press();
    await settle();
    b.app.release();
    expect(ears(b)).toBe('live');
    b.microphone.hear(1, 2);
    expect(sound(b)).toEqual([[1, 2]]);
  });

  test('deterministic turns know nothing of it', async () => {
    const b = await bench({ stored: new Map([['vela.handsFree', 'yes']]) });
    expect(ears(b)).toBe('off');
    expect(view(b).handsFree.shown).toBe(false);
    b.app.press();
    expect(b.microphone.opened).toEqual([]);
    expect(talk(b).held).toBe('shell');
  });
});

describe('a turn', () => {
  test('partials in the helm, the final in the conversation, stages by the gateway; the control stays free', async () => {
    const b = await live();
    b.socket().say('session.state', { value: 'listening' });
    expect(view(b)).toMatchObject({ title: 'Listening', stop: { word: 'Discard', disabled: false } });
    b.socket().say('transcript.partial', { text: 'now do' });
    b.socket().say('transcript.partial', { text: 'now do it' });
    expect(talk(b)).toMatchObject({ partial: 'now do it', settled: 6 });
    b.socket().say('transcript.final', { text: 'Now do it.' });
    b.socket().say('session.state', { value: 'thinking' });
    expect(view(b)).toMatchObject({ title: 'Working on it', small: 'Speak to interrupt', control: { disabled: false } });
    b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
    b.socket().say('response.text.delta', { responseId: 'r1', text: 'Done.' });
    b.socket().say('response.completed', { responseId: 'r1' });
    b.socket().say('turn.metrics', { turnId: 't1', sttMs: 180, firstTokenMs: 400, gatewayMs: 3, totalMs: 900 });
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b).turns).toHaveLength(1);
    expect(talk(b).turns[0]).toMatchObject({ kind: 'voice', said: 'Now do it.', answer: 'Done.', done: true });
    expect(stages(talk(b).turns[0]!).map(({ name, to }) => [name, to])).toEqual([
      ['Recognise', 180],
      ['First word', 580],
    ]);
    expect(view(b).title).toBe('Just talk');
  });

  test('a noise while nothing runs leaves no trace', async () => {
    const b = await live();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.final', { text: '' });
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b).turns).toEqual([]);
    expect(view(b).title).toBe('Just talk');
  });

  test('what a screen reader says would be heard: no phase and no final, but an answer that does not sound', async () => {
    const b = await live();
    const before = told(b).length;
    answering(b);
    b.socket().say('status', { type: 'status', action: 'searching_files', detail: 'x', startedAt: 1 });
    b.player.play(160);
    b.socket().say('response.completed', { responseId: 'r1', heardText: 'One two three four.' });
    b.socket().say('session.state', { value: 'idle' });
    expect(told(b).slice(before)).toEqual([]);
    b.app.change({ speak: false });
    b.app.submit('again');
    b.socket().say('transcript.final', { text: 'again' });
    b.socket().say('response.created', { responseId: 'r2', turnId: 't2' });
    b.socket().say('response.text.delta', { responseId: 'r2', text: 'Text.' });
    b.socket().say('response.completed', { responseId: 'r2' });
    expect(told(b).slice(before)).toEqual(['Echo: Text.']);
  });
});

describe('an answer that is spoken over', () => {
  test('falls silent at once; words end it, and are the next turn', async () => {
    const b = await live();
    answering(b);
    b.player.play(60);
    b.player.rendered = 75;
    b.socket().say('session.state', { value: 'listening' });
    expect(b.player.paused).toBe(true);
    expect(view(b)).toMatchObject({ title: 'The answer waits', small: 'It goes on, if that was no speech.', stop: { word: 'Stop' } });
    await settle();
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'playback.ack', payload: { responseId: 'r1', playedMs: 75 } });
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: 'One', playedMs: 75 });
    expect(b.player.cuts).toBe(1);
    b.socket().say('turn.metrics', { turnId: 't1', gatewayMs: 1, totalMs: 9 });
    b.socket().say('transcript.partial', { text: 'stop it' });
    expect(talk(b).partial).toBe('stop it');
    b.socket().say('transcript.final', { text: 'stop it please' });
    b.socket().say('session.state', { value: 'thinking' });
    expect(talk(b).turns.map(({ said, cut, kind }) => [said, cut, kind])).toEqual([
      ['what is it', 'interrupted', 'voice'],
      ['stop it please', null, 'voice'],
    ]);
    expect(b.player.paused).toBe(false);
    expect(b.socket().types).not.toContain('response.cancel');
  });

  test.each(['speaking', 'thinking'])('without words it goes on (%s), and is the same turn', async (phase) => {
    const b = await live();
    answering(b);
    b.socket().say('session.state', { value: 'listening' });
    await settle();
    const sent = b.socket().sent.length;
    b.socket().say('transcript.final', { text: '' });
    b.socket().say('session.state', { value: phase });
    expect(b.player.paused).toBe(false);
    expect(b.player.cuts).toBe(0);
    expect(b.socket().sent.length).toBe(sent);
    expect(talk(b)).toMatchObject({ note: null, turns: [{ said: 'what is it', cut: null }] });
    b.player.play(160);
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'playback.ack', payload: { playedMs: 160 } });
  });

  test('typed words end it while it waits', async () => {
    const b = await live();
    answering(b);
    b.socket().say('session.state', { value: 'listening' });
    b.app.submit('typed');
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: '', playedMs: 0 });
    b.socket().say('transcript.final', { text: 'typed' });
    expect(talk(b).turns.map(({ said, cut, kind }) => [said, cut, kind])).toEqual([
      ['what is it', 'interrupted', 'voice'],
      ['typed', null, 'text'],
    ]);
  });

  test('an answer to typed words: what is spoken over it is a spoken turn', async () => {
    const b = await live();
    b.app.submit('typed');
    b.socket().say('transcript.final', { text: 'typed' });
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: '', playedMs: 0 });
    b.socket().say('transcript.final', { text: 'spoken' });
    expect(talk(b).turns.map(({ kind }) => kind)).toEqual(['text', 'voice']);
  });

  test('Escape stops it while it waits', async () => {
    const b = await live();
    answering(b);
    b.socket().say('session.state', { value: 'listening' });
    expect(b.app.stop()).toBe(true);
    await settle();
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'response.cancel', payload: { responseId: 'r1' } });
  });
});

describe('the control', () => {
  test('a short press pauses: what was being said is kept, and nothing is sent any more; another one goes on', async () => {
    const b = await live();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half a' });
    tap(b);
    expect(b.socket().types.at(-1)).toBe('input_audio.clear');
    expect(view(b)).toMatchObject({
      title: 'half a',
      small: 'Not sent, because listening was paused.',
      control: { pressed: true, shape: 'microphone struck' },
    });
    b.microphone.hear(1, 2);
    expect(sound(b)).toEqual([]);
    b.socket().say('session.state', { value: 'idle' });
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'session.start', payload: { turnDetection: 'none' } });
    agree(b);
    b.app.dismissUnsent();
    expect(view(b).title).toBe('Listening is paused');
    expect(told(b)).toContain('Listening is paused');
    tap(b);
    agree(b);
    b.microphone.hear(3, 4);
    expect(sound(b)).toEqual([[3, 4]]);
    expect(b.app.settings.value.handsFree).toBe(true);
  });

  test('a short press does not touch the answer', async () => {
    const b = await live();
    answering(b);
    tap(b);
    expect([b.player.cuts, b.player.paused]).toEqual([0, false]);
    expect(b.socket().types).not.toContain('response.cancel');
  });

  test('paused, it is held to talk: from the very press, as without hands-free', async () => {
    const b = await live();
    tap(b);
    agree(b);
    b.app.press();
    b.microphone.hear(1, 2); // before it is known to be a hold
    expect(sound(b)).toEqual([]);
    b.timers.advance(250);
    expect(talk(b).held).toBe('voice');
    b.microphone.hear(3, 4);
    b.timers.advance(500);
    b.microphone.left = [chunk(5, 6)];
    b.app.release();
    await settle();
    b.microphone.hear(7, 8);
    expect(sound(b)).toEqual([[1, 2], [3, 4], [5, 6]]);
    expect(b.socket().types.at(-1)).toBe('input_audio.commit');
    expect(ears(b)).toBe('paused');
  });

  test('live, a hold ends the answer, sends each sound once, and commits when it is let go', async () => {
    const b = await live();
    answering(b);
    b.player.rendered = 90;
    b.app.press();
    b.microphone.hear(1, 2);
    expect(b.player.cuts).toBe(0);
    b.timers.advance(250);
    expect(b.player.cuts).toBe(1);
    await settle();
    expect(b.socket().sent.slice(-2)).toMatchObject([
      { type: 'response.cancel', payload: { responseId: 'r1' } },
      { type: 'playback.ack', payload: { responseId: 'r1', playedMs: 90 } },
    ]);
    b.microphone.hear(3, 4);
    b.timers.advance(300);
    b.app.release();
    await settle();
    b.microphone.hear(5, 6);
    expect(sound(b)).toEqual([[1, 2], [3, 4], [5, 6]]);
    expect(b.socket().types.filter((t) => t === 'input_audio.commit')).toHaveLength(1);
  });

  test('Enter and clicks of assistive technology are a short press', async () => {
    const b = await live();
    b.app.press();
    b.app.release();
    expect(ears(b)).toBe('paused');
  });
});

describe('the microphone', () => {
  test('is kept for as long as it is live, and given back 30 s after a pause', async () => {
    const b = await live();
    b.timers.advance(600_000);
    expect(b.microphone.closed).toBe(0);
    tap(b);
    b.timers.advance(30_000);
    expect(b.microphone.closed).toBe(1);
    expect(view(b).title).toBe('Listening is paused');
    agree(b);
    tap(b);
    await settle();
    agree(b);
    expect(ears(b)).toBe('live');
  });

  test('goes away: only a press brings it back, and what was being said is kept', async () => {
    const b = await live();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half' });
    b.microphone.events!.onLost();
    expect(b.socket().types.at(-1)).toBe('input_audio.clear');
    expect(view(b)).toMatchObject({ title: 'half', small: 'Not sent, because the microphone went away.' });
    expect(told(b).at(-1)).toBe('The microphone went away');
    b.app.dismissUnsent();
    b.socket().say('session.state', { value: 'idle' });
    expect(view(b)).toMatchObject({ title: 'The microphone went away', small: 'Press to open it again.' });
    b.app.visible();
    expect(b.microphone.opened).toHaveLength(1);
    b.app.press();
    await settle();
    expect(ears(b)).toBe('live');
  });

  test('is refused: said as ever, and tried again', async () => {
    const b = await there();
    b.microphone.fault = 'refused';
    b.app.change({ handsFree: true });
    await settle();
    agree(b);
    expect(view(b)).toMatchObject({ title: 'The browser refused the microphone', live: false, control: { disabled: true } });
    b.microphone.fault = null;
    b.app.act('microphone');
    await settle();
    expect(ears(b)).toBe('live');
  });

  test('is closed out of sight, and opens again by itself; not where it was paused', async () => {
    const b = await live();
    b.app.hidden();
    expect(b.microphone.closed).toBe(1);
    b.app.visible();
    await settle();
    expect(ears(b)).toBe('live');
    tap(b);
    b.app.hidden();
    b.app.visible();
    await settle();
    expect(b.microphone.opened).toHaveLength(2);
  });

  test('is closed where another view is shown, whether the page can be seen or not, and opens again with the talk control', async () => {
    const b = await live();
    b.location.hash = '#signals';
    b.app.hashChanged();
    expect([b.app.view.value, b.microphone.closed]).toEqual(['signals', 1]);
    b.app.hidden();
    b.app.visible();
    await settle();
    expect(b.microphone.opened).toHaveLength(1);
    b.location.hash = '#talk';
    b.app.hashChanged();
    await settle();
    expect(ears(b)).toBe('live');
  });

  test('another one is chosen: it is opened at once', async () => {
    const b = await live();
    b.app.change({ deviceId: 'usb' });
    await settle();
    expect(b.microphone.opened).toEqual(['', 'usb']);
    expect(ears(b)).toBe('live');
  });
});

describe('the connection', () => {
  test('is lost and resumed: nothing is sent meanwhile, half a sentence is not, and it goes on', async () => {
    const b = await live();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half' });
    const { seq } = b.socket();
    b.socket().end(1006);
    b.microphone.hear(1, 2);
    expect(view(b).live).toBe(false);
    b.timers.advance(15_000);
    resumed(b, seq);
    expect(b.socket().types).toEqual(['session.resume', 'input_audio.clear']);
    expect(view(b)).toMatchObject({ title: 'half', small: 'Not sent, because the connection was lost.' });
    b.socket().say('session.state', { value: 'idle' });
    b.microphone.hear(3, 4);
    expect(sound(b)).toEqual([[3, 4]]);
    expect(b.microphone.opened).toHaveLength(1);
  });

  test('is away for longer: the microphone is given back, and opens again with the session', async () => {
    const b = await live();
    const { seq } = b.socket();
    b.socket().end(1006);
    b.timers.advance(60_000);
    expect(b.microphone.closed).toBe(1);
    resumed(b, seq);
    await settle();
    expect(b.microphone.opened).toHaveLength(2);
  });

  test('to a new session: detection is asked for again', async () => {
    const b = await live();
    b.socket().end(4006);
    b.app.connect();
    b.socket().greet('session-2', { ...terms, sessionId: 'session-2' });
    await settle();
    expect(b.socket().sent.at(-1)!.payload).toEqual({ turnDetection: 'vad' });
    agree(b, { sessionId: 'session-2' });
    expect(ears(b)).toBe('live');
  });

  test('goes to another window: the microphone is closed, and opens again with the session', async () => {
    const b = await live();
    const { seq } = b.socket();
    b.socket().end(4002);
    expect(b.microphone.closed).toBe(1);
    b.app.connect();
    resumed(b, seq);
    await settle();
    expect(ears(b)).toBe('live');
  });

  test('an answer that waited when it was lost goes on when the gateway says so', async () => {
    const b = await live();
    answering(b);
    b.socket().say('session.state', { value: 'listening' });
    const { seq } = b.socket();
    b.socket().end(1006);
    expect(b.player.paused).toBe(true);
    b.timers.advance(15_000);
    resumed(b, seq);
    expect(b.player.paused).toBe(true);
    expect(b.socket().types).toContain('input_audio.clear');
    b.socket().say('session.state', { value: 'speaking' });
    expect(b.player.paused).toBe(false);
  });
});

test('the page goes: what it has of the machine is given back, unless it may come back', async () => {
  const b = await live();
  answering(b);
  b.app.leaving(false);
  expect([b.microphone.closed, b.player.closed]).toEqual([0, 0]);
  b.app.leaving();
  expect([b.microphone.closed, b.player.closed]).toEqual([1, 1]);
});
