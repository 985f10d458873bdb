// Agent turns over version 2: typing, interrupting, losing the connection and coming back.
import { describe, expect, test } from 'vitest';
import { FakeStore } from '../client/fakes';
import { banner } from './banner';
import { bench, openMicrophone, settle, type Bench, type BenchOptions } from './fakes';
import { helm } from './helm';
import { sessionWord } from './view';

const talk = (b: Bench) => b.app.model.value.talk;
const view = (b: Bench) => helm(b.app.model.value);
const last = (b: Bench) => talk(b).turns.at(-1)!;
const words = (b: Bench) => {
  const shown = banner(b.app.model.value, b.timers.now(), 0);
  return shown && [shown.strong, shown.text, shown.countdown].filter(Boolean).join(' ');
};

const agent = (options: BenchOptions = {}): Promise<Bench> => bench({ turns: 'agent', ...options });

/** What the gateway says of one turn, from its final words to the middle of its answer. */
function half(b: Bench, said: string, n = 1): void {
  b.socket().say('transcript.final', { text: said, itemId: `i${n}` });
  b.socket().say('session.state', { value: 'thinking' });
  b.socket().say('response.created', { responseId: `r${n}`, turnId: `t${n}` });
  b.socket().say('session.state', { value: 'speaking' });
  b.socket().say('response.text.delta', { text: 'You said: ', responseId: `r${n}` });
}

function rest(b: Bench, said: string, n = 1): void {
  b.socket().say('response.text.delta', { text: said, responseId: `r${n}` });
  b.socket().say('response.completed', { responseId: `r${n}`, usage: { promptTokens: 1204, completionTokens: 88 } });
  b.socket().say('turn.metrics', { turnId: `t${n}`, firstTokenMs: 30, gatewayMs: 2, totalMs: 90, usage: { promptTokens: 1204, completionTokens: 88 } });
  b.socket().say('session.state', { value: 'idle' });
}

describe('typing', () => {
  test('a typed turn, from Enter to idle', async () => {
    const b = await agent();
    expect(view(b).input).toEqual({ shown: true, disabled: false, why: '' });
    expect(b.app.submit('  \n')).toBe(false);
    expect(b.app.submit(' hello\nthere ')).toBe(true);
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'input_text.submit', payload: { text: 'hello\nthere' } });
    half(b, 'hello\nthere');
    expect(last(b)).toMatchObject({ kind: 'text', said: 'hello\nthere', answer: 'You said: ', turnId: 't1' });
    rest(b, 'hello');
    expect(last(b)).toMatchObject({ done: true, cut: null, metrics: { firstTokenMs: 30, gatewayMs: 2 } });
    expect(talk(b)).toMatchObject({ typed: null, inFlight: null, phase: 'idle' });
  });

  test('it needs no microphone', async () => {
    const b = await agent();
    b.microphone.fault = 'refused';
    b.app.press();
    await settle();
    expect(view(b)).toMatchObject({ control: { disabled: true }, input: { disabled: false } });
    expect(view(b).small).toMatch(/You can type meanwhile\.$/);
    expect(b.app.submit('hello')).toBe(true);
  });

  test('none in deterministic turns, none while held, off without a session', async () => {
    expect(view(await bench()).input.shown).toBe(false);
    const b = await agent({ greet: false });
    expect(view(b).input).toMatchObject({ shown: true, disabled: true });
    expect(b.app.submit('hello')).toBe(false);
    b.socket().greet();
    await openMicrophone(b);
    b.app.press();
    expect(view(b).input.shown).toBe(false);
  });

  test('over an answer: it ends the answer', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    expect(b.app.submit('two')).toBe(true);
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: 'You said: ', playedMs: 0 });
    b.socket().say('turn.metrics', { turnId: 't1', gatewayMs: 1, totalMs: 9 });
    half(b, 'two', 2);
    rest(b, 'two', 2);
    expect(talk(b).turns.map((t) => [t.said, t.answer, t.cut])).toEqual([
      ['one', 'You said: ', 'interrupted'],
      ['two', 'You said: two', null],
    ]);
  });

  test('sent while the answer was just ending: still a typed turn', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    b.app.submit('two');
    rest(b, 'one');
    half(b, 'two', 2);
    expect(talk(b).turns.map((t) => [t.said, t.kind, t.cut])).toEqual([
      ['one', 'text', null],
      ['two', 'text', null],
    ]);
    expect(talk(b).inFlight).toBe('text');
  });

  test('refused while a turn is recognised: the words are kept, and can be sent again', async () => {
    const b = await agent();
    b.app.submit('wait for me');
    const { id } = b.socket().sent.at(-1)!;
    b.socket().sayRaw(JSON.stringify({ type: 'error', payload: { code: 'turn_in_flight', message: 'x', retryable: true, ref: id } }));
    expect(view(b)).toMatchObject({ title: 'wait for me', small: 'Not sent, because a turn was still running.', unsent: true });
    expect(words(b)).toBeNull();
    b.app.sendUnsent();
    expect(b.socket().asked).toEqual(['input_text.submit', 'input_text.submit']);
    expect(talk(b).unsent).toBeNull();
  });

  test('the words of a hold that was lost can be sent as text', async () => {
    const b = await agent();
    await openMicrophone(b);
    b.app.press();
    b.microphone.hear(1, 2);
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half a thought' });
    b.app.loseHold('focus');
    b.socket().say('session.state', { value: 'idle' });
    b.app.sendUnsent();
    expect(b.socket().sent.at(-1)!.payload).toEqual({ text: 'half a thought' });
    expect(view(b).unsent).toBe(false);
  });

  test('Ask again sends the last words again', async () => {
    const b = await agent();
    b.app.submit('are you there');
    half(b, 'are you there');
    b.socket().say('error', { code: 'agent_timeout', message: 'x' });
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'error', heardText: '', playedMs: 0 });
    b.socket().say('session.state', { value: 'idle' });
    expect(words(b)).toBe('Echo did not answer in time. Your words are kept.');
    expect(last(b).cut).toBe('failed');
    b.app.act('ask again');
    expect(b.socket().sent.at(-1)!.payload).toEqual({ text: 'are you there' });
    expect(words(b)).toBeNull();
  });
});

describe('interrupting', () => {
  test.each(['thinking', 'speaking'])('a hold while %s ends the answer and goes on listening', async (phase) => {
    const b = await agent();
    await openMicrophone(b);
    b.app.submit('one');
    half(b, 'one');
    if (phase === 'thinking') b.socket().say('session.state', { value: 'thinking' });
    expect(view(b)).toMatchObject({ small: 'Hold to interrupt', control: { disabled: false, label: 'Hold to interrupt' }, stop: { word: 'Stop' } });
    b.app.press();
    b.microphone.hear(1, 2);
    expect(b.socket().types.at(-1)).toBe('audio');
    expect(view(b)).toMatchObject({ title: 'Let go anywhere to send', tone: 'listening', stop: { word: 'Discard' } });
    b.socket().say('response.text.delta', { text: 'late', responseId: 'r1' });
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: '', playedMs: 0 });
    b.socket().say('turn.metrics', { turnId: 't1', gatewayMs: 1, totalMs: 9 });
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'no, the' });
    expect(last(b)).toMatchObject({ answer: 'You said: late', cut: 'interrupted' });
    expect(talk(b)).toMatchObject({ held: 'voice', partial: 'no, the' });
    b.timers.advance(1000);
    b.app.release();
    await settle();
    half(b, 'no, the other one', 2);
    expect(last(b)).toMatchObject({ kind: 'voice', said: 'no, the other one', cut: null });
  });

  test('a gateway that does not let itself be interrupted: the control is busy, as in version 1', async () => {
    const b = await agent({ greet: false });
    b.socket().greet('s', { interrupt: false });
    b.app.submit('one');
    half(b, 'one');
    expect(view(b)).toMatchObject({ small: 'Wait, or stop the answer', control: { disabled: true }, input: { disabled: true } });
  });

  test('while the words are still being recognised there is nothing to interrupt', async () => {
    const b = await agent();
    await openMicrophone(b);
    b.app.press();
    b.microphone.hear(1, 2);
    b.socket().say('session.state', { value: 'listening' });
    b.timers.advance(1000);
    b.app.release();
    await settle();
    expect(view(b)).toMatchObject({ title: 'Recognising what you said', control: { disabled: true } });
  });

  test('Stop ends the answer, and nothing else', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    b.app.stop();
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'client', heardText: '', playedMs: 0 });
    b.socket().say('session.state', { value: 'idle' });
    expect(last(b).cut).toBe('cancelled');
  });
});

describe('on the way to an answer', () => {
  test('thoughts and tools, told apart from the answer', async () => {
    const b = await agent();
    b.app.submit('look');
    b.socket().say('transcript.final', { text: 'look' });
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
    b.socket().say('thinking.delta', { text: 'Let me ' });
    b.socket().say('thinking.delta', { text: 'see.' });
    b.socket().say('tool.call', { callId: 'c1', name: 'read_file', input: { limit: 3, path: 'session/fsm.go' } });
    b.socket().say('tool.call', { callId: 'c2', name: 'grep', input: { pattern: 'evCancel' } });
    b.socket().say('tool.call', { callId: 'c3', name: 'wait', input: {} });
    b.socket().say('tool.result', { callId: 'c1', name: 'read_file', success: true, output: {} });
    b.socket().say('tool.result', { callId: 'c2', name: 'grep', success: false });
    expect(last(b)).toMatchObject({ thought: 'Let me see.', answer: '' });
    expect(last(b).steps.map((s) => [s.name, s.detail, s.state])).toEqual([
      ['read_file', 'session/fsm.go', 'done'],
      ['grep', 'evCancel', 'failed'],
      ['wait', '', 'running'],
    ]);
    expect(last(b).steps[0]!.took).toBe(3);
    b.app.stop();
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'client', heardText: '', playedMs: 0 });
    expect(last(b).steps[2]!.state).toBe('unknown');
  });
});

describe('the connection', () => {
  test('lost in the middle of an answer, and back: nothing but the banner goes', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    b.timers.advance(20_000);
    b.socket().end(1006);
    expect(sessionWord(talk(b))).toBe('Kept');
    expect(words(b)).toMatch(/^Connection lost\. Trying again in \d s\. The session is kept for 2:00\.$/);
    expect(view(b)).toMatchObject({
      title: 'Connection lost',
      small: 'What was said stays here. The conversation goes on where it was.',
      control: { disabled: true, ring: 'waiting' },
      input: { disabled: true },
      stop: { disabled: true },
    });
    expect(last(b)).toMatchObject({ answer: 'You said: ', cut: null });
    b.timers.advance(1000);
    expect(sessionWord(talk(b))).toBe('Kept');
    b.socket().welcome(6, 7);
    b.socket().say('response.text.delta', { text: 'one', responseId: 'r1' });
    expect(words(b)).toBeNull();
    expect(sessionWord(talk(b))).toBe('Speaking');
    expect(last(b)).toMatchObject({ answer: 'You said: one', cut: null });
    b.socket().say('response.completed', { responseId: 'r1' });
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b).turns).toHaveLength(1);
    expect(talk(b).newSession).toBe(false);
    expect(b.socket().asked).toEqual([]);
  });

  test('not recovered: the answer is marked, and the new session says that it is new', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    b.socket().end(1001);
    b.timers.advance(1000);
    b.socket().end(4006);
    expect(last(b).cut).toBe('lost');
    b.socket().greet('session-2');
    expect(words(b)).toBe('Connected again, to a new session. What was said before is not known to it.');
    expect(talk(b)).toMatchObject({ sessionId: 'session-2', kept: false, phase: 'idle', inFlight: null });
    expect(view(b).control.disabled).toBe(false);
  });

  test('taken over by another window, and taken back', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    b.socket().end(4002);
    expect(words(b)).toBe('This session went on in another window.');
    expect(view(b)).toMatchObject({ title: 'Gone to another window', control: { disabled: true } });
    b.app.act('connect');
    b.socket().welcome(6, 9);
    rest(b, 'one');
    expect(talk(b).turns.map((t) => [t.answer, t.cut])).toEqual([['You said: one', null]]);
  });

  test('typed words that never arrived come back to be sent again', async () => {
    const b = await agent();
    b.app.submit('did you hear me');
    b.socket().end(1006);
    b.timers.advance(1000);
    b.socket().welcome(1);
    expect(view(b)).toMatchObject({ title: 'did you hear me', small: 'Not sent, because the connection was lost.', unsent: true });
    expect(talk(b).inFlight).toBeNull();
  });

  test('typed words that did arrive do not', async () => {
    const b = await agent();
    b.app.submit('hello');
    b.socket().end(1006);
    b.timers.advance(1000);
    b.socket().welcome(1, 5);
    half(b, 'hello');
    expect(view(b).unsent).toBe(false);
    expect(last(b).kind).toBe('text');
  });

  test('typed words, and a new session: not lost either', async () => {
    const b = await agent();
    b.app.submit('hello');
    b.socket().end(1006);
    b.timers.advance(1000);
    b.socket().end(4006);
    b.socket().greet('session-2');
    expect(view(b)).toMatchObject({ title: 'hello', unsent: true });
  });

  test.each([
    ['nothing of it arrived', 1, 1, null],
    ['the end of it did not arrive', 1, 3, 'half'],
  ])('lost right after the release, and %s: said so, and nothing hangs', async (_, after, lastSeq, text) => {
    const b = await agent();
    await openMicrophone(b);
    b.app.press();
    b.microphone.hear(1, 2);
    b.timers.advance(1000);
    b.app.release();
    await settle();
    b.socket().end(1006);
    b.timers.advance(1000);
    b.socket().welcome(after, lastSeq);
    if (text) {
      b.socket().say('session.state', { value: 'listening' });
      b.socket().say('transcript.partial', { text });
      expect(b.socket().asked).toEqual(['input_audio.clear']);
      b.socket().say('session.state', { value: 'idle' });
    }
    expect(talk(b)).toMatchObject({ inFlight: null, unsent: { text: text ?? '', why: 'connection' } });
    expect(view(b).control.disabled).toBe(false);
  });

  test('lost right after the release, and the gateway had heard it all', async () => {
    const b = await agent();
    await openMicrophone(b);
    b.app.press();
    b.microphone.hear(1, 2);
    b.timers.advance(1000);
    b.app.release();
    await settle();
    b.socket().end(1006);
    b.timers.advance(1000);
    b.socket().welcome(1, 2);
    b.socket().say('session.state', { value: 'listening' });
    half(b, 'all of it');
    expect(talk(b).unsent).toBeNull();
    expect(last(b)).toMatchObject({ kind: 'voice', said: 'all of it' });
    rest(b, 'all of it');
    expect(talk(b).inFlight).toBeNull();
  });

  test('a session ended by hand is closed for good', async () => {
    const b = await agent();
    b.app.endSession();
    expect(b.sockets[0]!.asked).toEqual(['session.close']);
    expect(sessionWord(talk(b))).toBe('No session');
  });

  test('deterministic turns have no session to come back to, and offer no subprotocol', async () => {
    const b = await bench();
    expect(b.socket().protocols).toEqual([]);
    b.app.leaving();
    expect(b.tab.kept.size).toBe(0);
    expect(b.app.keptFor).toBeNull();
  });
});

describe('a page that is loaded again', () => {
  /** A page, left in the middle of its second turn; what it leaves is in its tab. */
  async function left(): Promise<FakeStore> {
    const tab = new FakeStore();
    const b = await agent({ tab });
    b.app.submit('one');
    half(b, 'one');
    rest(b, 'one');
    b.app.submit('two');
    half(b, 'two', 2);
    b.app.leaving();
    return tab;
  }

  /** What the gateway says again: the session's first idle, and its first turn. */
  function again(b: Bench): void {
    b.socket().say('session.state', { value: 'idle' });
    half(b, 'one');
    rest(b, 'one');
  }

  const items = [
    { role: 'user', text: 'before', at: 900 },
    { role: 'assistant', text: 'There was something', at: 901 },
    { role: 'user', text: 'one', at: 1000 },
    { role: 'assistant', text: 'You said: one', at: 1001 },
  ];

  test('has the conversation again, and the turn that runs', async () => {
    const b = await agent({ tab: await left(), greet: false });
    expect(sessionWord(talk(b))).toBe('Kept');
    expect(view(b).title).toBe('Connecting');
    b.socket().welcome(0, 15);
    expect(b.socket().sent[0]!.payload.after).toBe(0);
    again(b);
    half(b, 'two', 2);
    expect(b.socket().asked).toEqual(['history.get']);
    b.socket().say('history', { items });
    expect(talk(b).turns.map((t) => [t.said, t.answer, t.past])).toEqual([
      ['before', 'There was something', true],
      ['one', 'You said: one', false],
      ['two', 'You said: ', false],
    ]);
    expect(talk(b).turns[1]!.usage).toEqual({ promptTokens: 1204, completionTokens: 88 });
    rest(b, 'two', 2);
    expect(last(b).answer).toBe('You said: two');
    expect(b.app.announcements.value.map((a) => a.text)).toEqual(['Connecting', 'Connected', 'Echo: You said: two', 'Idle']);
    expect(talk(b).newSession).toBe(false);
  });

  test('a turn that came to its end meanwhile is there once', async () => {
    const b = await agent({ tab: await left(), greet: false });
    b.socket().welcome(0, 18);
    again(b);
    half(b, 'two', 2);
    rest(b, 'two', 2);
    const cut = { role: 'assistant', text: 'You said: two', heardText: 'You', at: 3 };
    b.socket().say('history', { items: [...items, { role: 'user', text: 'two', at: 2 }, cut] });
    expect(talk(b).turns.map((t) => t.said)).toEqual(['before', 'one', 'two']);
    expect(last(b).past).toBe(false);
  });

  test('a copy of the page, and a new tab, have sessions of their own', async () => {
    const tab = await left();
    await agent({ tab, greet: false });
    const copy = await agent({ tab });
    expect(copy.socket().types).toEqual(['session.start']);
  });
});

describe('the conversation as a whole', () => {
  test('a new one: the gateway forgets, then the page does', async () => {
    const b = await agent();
    expect(view(b).clear).toMatchObject({ shown: true, disabled: true, why: 'Off: nothing has been said.' });
    b.app.submit('one');
    half(b, 'one');
    expect(view(b).clear.disabled).toBe(true);
    rest(b, 'one');
    b.app.newConversation();
    expect(b.socket().types.at(-1)).toBe('history.clear');
    expect(talk(b).turns).toHaveLength(1);
    b.socket().say('history', { items: [] });
    expect(talk(b)).toMatchObject({ turns: [], clearing: false });
    expect((await bench()).app.model.value.turns && view(await bench()).clear.shown).toBe(false);
  });

  test('asked for again when the answer was lost with the connection', async () => {
    const b = await agent();
    b.app.submit('one');
    half(b, 'one');
    rest(b, 'one');
    b.app.newConversation();
    b.socket().end(1006);
    b.timers.advance(1000);
    b.socket().welcome(9);
    expect(b.socket().asked).toEqual(['history.clear']);
  });

  test('the transcript: what was said, quoted, in order', async () => {
    const b = await agent();
    b.app.saveTranscript();
    expect(b.saved).toEqual([]);
    b.app.submit('# one\ntwo');
    b.socket().say('transcript.final', { text: '# one\ntwo' });
    b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
    b.socket().say('tool.call', { callId: 'c', name: 'read_file', input: { path: 'a`b\nc' } });
    b.socket().say('response.text.delta', { text: 'half' });
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: '', playedMs: 0 });
    b.app.saveTranscript();
    expect(b.saved).toEqual([
      {
        name: 'conversation-1970-01-01-0016.md',
        text: [
          '# Conversation of 1970-01-01',
          '**You**, 00:16 UTC',
          '> # one\n> two',
          '**Echo**',
          '- `read_file` `a b c` (not finished)',
          '> half',
          '(you interrupted)\n',
        ].join('\n\n'),
      },
    ]);
  });
});

describe('who comes', () => {
  const admits = (token: string | null): boolean => token === 'good.to.ken';

  test('a token in the address is taken out of it, kept in the tab, and goes to the gateway alone', async () => {
    const b = await agent({ hash: '#token=good.to.ken', admits });
    expect(b.addresses).toEqual(['']);
    expect(b.tab.kept.get('vela.token')).toBe('good.to.ken');
    expect(b.stored.size).toBe(0);
    expect(b.socket().url).not.toContain('token');
    expect(b.socket().protocols).toEqual(['vela.v2', 'vela.token.good.to.ken']);
    expect(b.app.model.value.signIn).toBeNull();
  });

  test('in deterministic turns as well', async () => {
    const b = await bench({ hash: '#token=good.to.ken', search: '?turns=deterministic', admits });
    expect(b.addresses).toEqual(['?turns=deterministic']);
    expect(b.socket().protocols).toEqual(['vela.v1', 'vela.token.good.to.ken']);
  });

  test('none: asked for; a wrong one: asked for again; the right one: in', async () => {
    const b = await agent({ admits, greet: false });
    expect(b.app.model.value.signIn).toBe('needed');
    expect(b.sockets).toHaveLength(0);
    b.app.signIn('bad.to.ken');
    await settle();
    expect(b.app.model.value.signIn).toBe('refused');
    expect(b.tab.kept.size).toBe(0);
    b.app.signIn('no token at all');
    expect(b.app.model.value.signIn).toBe('refused');
    b.app.signIn(' good.to.ken ');
    await settle();
    expect(b.app.model.value.signIn).toBeNull();
    b.socket().greet();
    expect(view(b).control.disabled).toBe(false);
  });

  test('a token whose time is over says so', async () => {
    const over = `h.${btoa(JSON.stringify({ exp: 999 })).replaceAll('=', '')}.s`;
    const b = await agent({ hash: `#token=${over}`, admits, greet: false });
    expect(b.app.model.value.signIn).toBe('expired');
  });

  test('only what a token allows is there to be seen', async () => {
    const which = (claims: object): string => `h.${btoa(JSON.stringify(claims)).replaceAll('=', '')}.s`;
    const b = await agent({ hash: '#wiring' });
    expect([b.app.views, b.app.view.value, b.app.operates]).toEqual([['talk', 'signals', 'wiring'], 'wiring', true]);
    for (const [token, views] of [
      ['good.to.ken', ['talk']],
      [which({ signals: 'follow' }), ['talk']],
      [which({ signals: ['emit'] }), ['talk']],
      [which({ signals: ['emit', 'follow'] }), ['talk', 'signals']],
    ] as const) {
      const b = await agent({ hash: `#token=${token}`, admits: () => true });
      expect([b.app.views, b.app.operates]).toEqual([views, false]);
      for (const view of ['signals', 'wiring', 'nothing'] as const) {
        b.location.hash = `#${view}`;
        b.app.hashChanged();
        expect(b.app.view.value).toBe((views as readonly string[]).includes(view) ? view : 'talk');
      }
    }
  });

  test('another token, another view', async () => {
    const b = await agent({ hash: '#signals', admits, greet: false });
    expect(b.app.view.value).toBe('signals');
    b.app.signIn('good.to.ken');
    expect(b.app.view.value).toBe('talk');
  });

  test('4001 in the middle of a conversation: it stays, and goes on with another token', async () => {
    let good = 'good.to.ken';
    const b = await agent({ hash: '#token=good.to.ken', admits: (token) => token === good });
    b.app.submit('one');
    half(b, 'one');
    good = 'bet.ter.one';
    b.socket().end(4001);
    expect(b.app.model.value.signIn).toBe('refused');
    expect(words(b)).toBeNull();
    expect(talk(b).turns).toHaveLength(1);
    b.app.signIn('bet.ter.one');
    await settle();
    expect(b.socket().protocols[1]).toBe('vela.token.bet.ter.one');
    b.socket().welcome(6, 10);
    rest(b, 'one');
    expect(last(b)).toMatchObject({ answer: 'You said: one', cut: null });
  });

  test('a handshake that fails for want of a good token asks for it, and does not try on and on', async () => {
    let good = 'good.to.ken';
    for (const turns of ['agent', 'deterministic'] as const) {
      good = 'good.to.ken';
      const b = await bench({ turns, hash: '#token=good.to.ken', admits: (token) => token === good });
      good = '';
      b.socket().end(1006);
      b.timers.advance(1000);
      b.socket().fail();
      await settle();
      expect(b.app.model.value.signIn).toBe('refused');
      const sockets = b.sockets.length;
      b.timers.advance(600_000);
      expect(b.sockets).toHaveLength(sockets);
    }
  });
});
