import { describe, expect, test } from 'vitest';
import { bench, type Bench } from './fakes';
import { helm } from './helm';
import { sessionWord } from './view';

const talk = (b: Bench) => b.app.model.value.talk;
const view = (b: Bench) => helm(b.app.model.value);
const last = (b: Bench) => talk(b).turns.at(-1);

const answerParts = ['[mocked assistant] ', 'This is a deterministic mocked response from the gateway vertical slice.'];

describe('a mocked turn', () => {
  test('the whole sequence, event by event', async () => {
    const b = await bench();
    expect(view(b).mocked.disabled).toBe(false);
    expect(view(b).stop.disabled).toBe(true);

    b.app.runMockedTurn();
    expect(b.socket().sent).toEqual([{ type: 'mocked.turn.trigger', payload: {} }]);
    // In flight from the press on: a second press sends nothing.
    expect(view(b).mocked.disabled).toBe(true);
    expect(view(b).control.disabled).toBe(true);
    expect(view(b).stop).toMatchObject({ disabled: false, word: 'Cancel' });
    b.app.runMockedTurn();
    b.app.press();
    expect(b.socket().sent).toHaveLength(1);

    b.socket().say('session.state', { value: 'listening' });
    expect(sessionWord(talk(b))).toBe('Listening');
    b.socket().say('transcript.final', { text: '[mocked user] What is the current mocked vertical slice?' });
    expect(last(b)).toMatchObject({ kind: 'mocked', said: '[mocked user] What is the current mocked vertical slice?', answer: '' });
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('session.state', { value: 'speaking' });
    b.socket().say('response.text.delta', { text: answerParts[0] });
    expect(last(b)!.answer).toBe('[mocked assistant] ');
    b.socket().say('response.text.delta', { text: answerParts[1] });
    expect(last(b)).toMatchObject({ answer: answerParts.join(''), done: false });
    b.socket().say('response.completed');
    expect(last(b)).toMatchObject({ done: true, cut: null });
    expect(view(b).mocked.disabled).toBe(true);
    b.socket().say('session.state', { value: 'idle' });
    expect(view(b).mocked.disabled).toBe(false);
    expect(view(b).control.disabled).toBe(false);
    expect(view(b).stop.disabled).toBe(true);
    expect(talk(b).turns).toHaveLength(1);
    expect(last(b)!.cut).toBeNull();
  });

  test('cancelled: back to idle, and what was shown stays', async () => {
    const b = await bench();
    b.app.runMockedTurn();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.final', { text: 'question' });
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('session.state', { value: 'speaking' });
    b.socket().say('response.text.delta', { text: answerParts[0] });
    expect(b.app.stop()).toBe(true);
    expect(b.socket().types).toEqual(['mocked.turn.trigger', 'response.cancel']);
    b.socket().say('session.state', { value: 'idle' });
    expect(last(b)).toMatchObject({ said: 'question', answer: '[mocked assistant] ', cut: 'cancelled', done: false });
    expect(view(b)).toMatchObject({ word: 'Idle', timed: false, stop: { disabled: true }, mocked: { disabled: false } });
    // and another may follow on the same socket
    b.app.runMockedTurn();
    expect(b.socket().types.at(-1)).toBe('mocked.turn.trigger');
  });

  test('a cancel before anything was shown leaves nothing behind', async () => {
    const b = await bench();
    b.app.runMockedTurn();
    b.app.stop();
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b).turns).toEqual([]);
  });

  test('refused while another runs elsewhere: the words of it, and nothing hangs', async () => {
    const b = await bench();
    b.app.runMockedTurn();
    b.socket().say('error', { code: 'mocked_turn_in_flight', message: 'x', retryable: true });
    expect(talk(b).failure?.code).toBe('mocked_turn_in_flight');
    expect(view(b).mocked.disabled).toBe(false);
  });
});

describe('the control shell', () => {
  test('press sends one placeholder append, release the commit; partial, final, answer', async () => {
    const b = await bench();
    expect(view(b)).toMatchObject({ title: 'Control shell, no microphone', control: { shape: 'shell', disabled: false } });
    expect(view(b).small).toBe('Deterministic turns. Holding this sends placeholder audio, not your voice.');
    b.app.press();
    expect(b.socket().sent).toEqual([{ type: 'input_audio.append', payload: { chunk: 'placeholder' } }]);
    expect(view(b)).toMatchObject({ tone: 'listening', stop: { word: 'Discard', disabled: false }, mocked: { disabled: true } });
    b.app.press();
    expect(b.socket().sent).toHaveLength(1);
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: '[mocked partial] Placeholder push-to-talk transcript in progress.' });
    expect(talk(b).partial).toBe('[mocked partial] Placeholder push-to-talk transcript in progress.');
    expect(talk(b).turns).toEqual([]);

    b.app.release();
    expect(b.socket().types).toEqual(['input_audio.append', 'input_audio.commit']);
    expect(view(b)).toMatchObject({ title: 'Mocked turn in flight', control: { disabled: true }, stop: { word: 'Cancel', disabled: false } });
    b.socket().say('transcript.final', { text: '[mocked final] Placeholder push-to-talk transcript completed from 1 appended chunk(s).' });
    expect(talk(b).partial).toBe('');
    expect(last(b)).toMatchObject({ kind: 'shell', said: '[mocked final] Placeholder push-to-talk transcript completed from 1 appended chunk(s).' });
    for (const value of ['thinking', 'speaking']) b.socket().say('session.state', { value });
    for (const text of answerParts) b.socket().say('response.text.delta', { text });
    b.socket().say('response.completed');
    b.socket().say('session.state', { value: 'idle' });
    expect(last(b)).toMatchObject({ answer: answerParts.join(''), done: true });
    expect(view(b).control.disabled).toBe(false);
    expect(b.microphone.opened).toEqual([]);
  });

  test('a press of an instant is a turn as well', async () => {
    const b = await bench();
    b.app.press();
    b.app.release();
    expect(b.socket().types).toEqual(['input_audio.append', 'input_audio.commit']);
  });

  test('discarded while held: a cancel, no commit, nothing shown', async () => {
    const b = await bench();
    b.app.press();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half' });
    expect(b.app.stop()).toBe(true);
    b.app.release();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    b.socket().say('transcript.partial', { text: 'a straggler' });
    expect(talk(b).partial).toBe('');
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b)).toMatchObject({ partial: '', held: null, unsent: null, turns: [] });
  });

  test('held again before the idle of the discarded one arrives', async () => {
    const b = await bench();
    b.app.press();
    b.socket().say('session.state', { value: 'listening' });
    b.app.stop();
    b.app.press();
    const pressed = b.timers.now();
    b.timers.advance(50);
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b)).toMatchObject({ held: 'shell', since: pressed });
    expect(view(b)).toMatchObject({ tone: 'listening', stop: { word: 'Discard', disabled: false } });
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'p' });
    b.app.release();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel', 'input_audio.append', 'input_audio.commit']);
    expect(talk(b).partial).toBe('p');
  });

  test('lost while held: cancelled, and the words stay until dismissed', async () => {
    const b = await bench();
    b.app.press();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half a sentence' });
    b.app.loseHold('focus');
    b.app.release();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    b.socket().say('session.state', { value: 'idle' });
    expect(view(b)).toMatchObject({ title: 'half a sentence', small: 'Not sent, because the page lost focus.', unsent: true });
    b.app.dismissUnsent();
    expect(view(b).unsent).toBe(false);
  });
});

describe('sessions', () => {
  test('nothing can be done before session.ready', async () => {
    const b = await bench({ greet: false });
    b.socket().open();
    expect(b.app.model.value.connection.state).toBe('connected');
    expect(view(b)).toMatchObject({ title: 'Connecting', mocked: { disabled: true }, control: { disabled: true }, stop: { disabled: true } });
    b.app.runMockedTurn();
    b.app.press();
    expect(b.socket().sent).toEqual([]);
    b.socket().say('session.ready', { sessionId: 'x' });
    expect(view(b).mocked.disabled).toBe(false);
  });

  test('lost in the middle of an answer: it stays, marked, and the next session says that it is new', async () => {
    const b = await bench();
    b.app.runMockedTurn();
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.final', { text: 'question' });
    b.socket().say('session.state', { value: 'speaking' });
    b.socket().say('response.text.delta', { text: 'half an ans' });
    b.socket().end(1006);
    expect(last(b)).toMatchObject({ answer: 'half an ans', cut: 'lost' });
    expect(sessionWord(talk(b))).toBe('Ended');
    expect(view(b)).toMatchObject({ title: 'Connection lost', mocked: { disabled: true }, stop: { disabled: true } });
    b.timers.advance(1000);
    b.socket().greet('session-2');
    expect(talk(b)).toMatchObject({ newSession: true, sessionId: 'session-2' });
    expect(talk(b).turns).toHaveLength(1);
    expect(view(b).mocked.disabled).toBe(false);
    b.app.act('dismiss new session');
    expect(talk(b).newSession).toBe(false);
  });

  test('readiness that is only said again makes no new session', async () => {
    const b = await bench();
    b.app.runMockedTurn();
    b.socket().say('transcript.final', { text: 'question' });
    b.socket().say('session.ready', { sessionId: 'session-1' });
    expect(talk(b).newSession).toBe(false);
  });

  test('a connection that is lost before anything was said comes back without a word', async () => {
    const b = await bench();
    b.socket().end(1001);
    b.timers.advance(1000);
    b.socket().greet('session-2');
    expect(talk(b).newSession).toBe(false);
  });

  test('ended by the user: not connected, no session', async () => {
    const b = await bench();
    b.app.endSession();
    expect(b.app.model.value.connection.state).toBe('not connected');
    expect(sessionWord(talk(b))).toBe('No session');
    b.app.connect();
    b.socket().greet('session-2');
    expect(view(b).mocked.disabled).toBe(false);
  });

  test('the last two hundred turns are kept', async () => {
    const b = await bench();
    for (let i = 0; i < 203; i++) {
      b.app.runMockedTurn();
      b.socket().say('session.state', { value: 'listening' });
      b.socket().say('transcript.final', { text: `turn ${i}` });
      b.socket().say('session.state', { value: 'idle' });
    }
    expect(talk(b).turns).toHaveLength(200);
    expect(talk(b).turns[0]!.said).toBe('turn 3');
  });
});

describe('which turns', () => {
  test.each([
    ['what the gateway runs by default', '', 'agent', 'agent'],
    ['the address says otherwise', '?turns=deterministic', 'agent', 'deterministic'],
    ['the address says nonsense', '?turns=both', 'agent', 'agent'],
  ] as const)('%s', async (_, search, turns, want) => {
    const b = await bench({ search, turns, greet: false });
    expect(b.socket().url).toBe(`ws://gateway/ws?turns=${want}`);
  });

  test('a gateway that does not say: deterministic', async () => {
    const b = await bench({ engines: null, greet: false });
    expect(b.socket().url).toBe('ws://gateway/ws?turns=deterministic');
  });

  test('switching begins a new session, and the address shows it', async () => {
    const b = await bench();
    b.app.setTurns('agent');
    expect(b.addresses).toEqual(['?turns=agent']);
    expect(b.sockets).toHaveLength(2);
    expect(b.sockets[0]!.closedWith).toBe(1000);
    expect(b.socket().url).toBe('ws://gateway/ws?turns=agent');
    b.app.setTurns('agent');
    expect(b.sockets).toHaveLength(2);
  });
});
