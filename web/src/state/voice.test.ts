import { describe, expect, test } from 'vitest';
import type { MicrophoneFault } from '../audio/microphone';
import { banner } from './banner';
import { bench, chunk, openMicrophone, settle, type Bench } from './fakes';
import { helm } from './helm';

const talk = (b: Bench) => b.app.model.value.talk;
const view = (b: Bench) => helm(b.app.model.value);
const chunks = (b: Bench) => b.socket().sent.filter((e) => e.type === 'input_audio.append').map((e) => e.payload.chunk);

/** An app whose microphone is open, and whose control is held. */
async function held(): Promise<Bench> {
  const b = await bench({ turns: 'agent' });
  await openMicrophone(b);
  b.app.press();
  return b;
}

describe('the first press', () => {
  test('asks for the microphone and starts no turn, however long it is held', async () => {
    const b = await bench({ turns: 'agent' });
    b.microphone.slow = true;
    b.app.press();
    expect(b.microphone.opened).toEqual(['']);
    expect(view(b).title).toBe('Waiting for the microphone');
    b.microphone.answer();
    await settle();
    b.microphone.hear(1, 2);
    b.app.release();
    await settle();
    expect(b.socket().sent).toEqual([]);
    expect(talk(b).held).toBeNull();
    expect(view(b).title).toBe('The microphone is on. Hold to talk.');
  });

  test.each<[MicrophoneFault, string, string]>([
    ['refused', 'The browser refused the microphone', 'Microphone refused.'],
    ['none', 'No microphone found', 'No microphone found.'],
    ['in use', 'Another program is using the microphone', 'Another program is using the microphone.'],
    ['insecure', 'No microphone at this address', 'No microphone.'],
    ['broken', 'The microphone did not start', 'The microphone did not start.'],
  ])('%s: said in the helm and in the banner; the mocked turn still runs', async (fault, title, strong) => {
    const b = await bench({ turns: 'agent' });
    b.microphone.fault = fault;
    b.app.press();
    await settle();
    expect(view(b)).toMatchObject({ title, tone: 'bad', word: 'Microphone off', control: { disabled: true, shape: 'microphone struck' } });
    expect(view(b).mocked.disabled).toBe(false);
    expect(banner(b.app.model.value, 0, 0)).toMatchObject({ strong, alert: true, action: { word: 'Try again' } });
    // Try again, and this time it is allowed.
    b.microphone.fault = null;
    b.app.act('microphone');
    await settle();
    expect(view(b)).toMatchObject({ title: 'The microphone is on. Hold to talk.', control: { disabled: false } });
  });
});

describe('a hold', () => {
  test('everything between the press and the release is sent, in order, and the last of it before the commit', async () => {
    const b = await bench({ turns: 'agent' });
    await openMicrophone(b);
    b.microphone.hear(9, 9); // before the press
    b.app.press();
    b.microphone.hear(1, 2);
    b.microphone.hear(3, 4);
    b.timers.advance(1000);
    b.microphone.left = [chunk(5, 6), chunk(7)];
    b.app.release();
    expect(view(b).control.disabled).toBe(true);
    expect(b.socket().types.at(-1)).toBe('input_audio.append'); // not committed before the flush
    await settle();
    b.microphone.hear(9, 9); // after the release
    expect(chunks(b)).toEqual(['AQI=', 'AwQ=', 'BQY=', 'Bw==']);
    expect(b.socket().types.at(-1)).toBe('input_audio.commit');
    expect(b.socket().types.filter((t) => t !== 'input_audio.append')).toEqual(['input_audio.commit']);
  });

  test('its turn: partials in the helm, the final in the conversation, stages by arrival', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'now do the' });
    b.socket().say('transcript.partial', { text: 'now do the same' });
    expect(talk(b)).toMatchObject({ partial: 'now do the same', settled: 'now do the'.length });
    b.timers.advance(1000);
    b.app.release();
    await settle();
    b.timers.advance(180);
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('transcript.final', { text: 'Now do the same.' });
    b.timers.advance(400);
    b.socket().say('session.state', { value: 'speaking' });
    b.socket().say('response.text.delta', { text: 'Done.' });
    const turn = talk(b).turns[0]!;
    expect(turn).toMatchObject({ kind: 'voice', said: 'Now do the same.', answer: 'Done.' });
    expect(turn.finalAt! - turn.released!).toBe(180);
    expect(turn.firstWordAt! - turn.finalAt!).toBe(400);
    expect(view(b)).toMatchObject({ small: 'Wait, or stop the answer', control: { disabled: true }, stop: { word: 'Stop' } });
  });

  test('shorter than 250 ms: cancelled, and "Hold to talk" is all', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.timers.advance(249);
    b.app.release();
    await settle();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    expect(view(b).title).toBe('Hold to talk');
  });

  test('so short that nothing was captured: nothing is sent at all', async () => {
    const b = await held();
    b.timers.advance(10);
    b.app.release();
    await settle();
    expect(b.socket().sent).toEqual([]);
  });

  test('stopped while the worklet is still being emptied: no commit follows', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.timers.advance(1000);
    b.app.release();
    b.app.stop();
    await settle();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
  });

  test('nothing recognised: said so, and no turn appears', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.timers.advance(1000);
    b.app.release();
    await settle();
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('transcript.final', { text: '' });
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b).turns).toEqual([]);
    expect(view(b)).toMatchObject({ title: 'Nothing was recognised', control: { disabled: false } });
  });

  test('the agent fails after it began: the answer stays, marked', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.timers.advance(1000);
    b.app.release();
    await settle();
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('transcript.final', { text: 'question' });
    b.socket().say('session.state', { value: 'speaking' });
    b.socket().say('response.text.delta', { text: 'half' });
    b.socket().say('error', { code: 'agent_failed', message: 'x', retryable: true });
    b.socket().say('session.state', { value: 'idle' });
    expect(talk(b).turns[0]).toMatchObject({ answer: 'half', cut: 'failed' });
    expect(banner(b.app.model.value, 0, 0)!.strong).toBe('Echo stopped with an error.');
    // The next turn is the end of it.
    b.app.press();
    expect(talk(b).failure).toBeNull();
  });
});

describe('the microphone', () => {
  test('unplugged while held: the words stay, nothing is committed', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.socket().say('session.state', { value: 'listening' });
    b.socket().say('transcript.partial', { text: 'half' });
    b.microphone.events!.onLost();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    expect(view(b)).toMatchObject({ title: 'half', small: 'Not sent, because the microphone went away.' });
  });

  test('the page is hidden: the hold is lost and the microphone given back', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.app.hidden();
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    expect(b.microphone.closed).toBe(1);
    expect(b.app.model.value.microphone).toBe('closed');
  });

  test('the connection is lost while held', async () => {
    const b = await held();
    b.microphone.hear(1, 2);
    b.socket().end(1006);
    expect(view(b).small).toBe('Not sent, because the connection was lost.');
    b.app.release();
    await settle();
    b.timers.advance(2000);
    b.socket().greet('2');
    expect(b.socket().sent).toEqual([]);
  });

  test('given back after 30 s without a turn, not during one', async () => {
    const b = await held();
    b.timers.advance(120_000);
    expect(b.microphone.closed).toBe(0);
    b.app.release();
    await settle();
    b.timers.advance(120_000); // the answer takes its time
    expect(b.microphone.closed).toBe(0);
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('session.state', { value: 'idle' });
    b.timers.advance(30_000);
    expect(b.microphone.closed).toBe(1);
  });

  test('once allowed, a press that has to open it again begins the turn as soon as it is there', async () => {
    const b = await bench({ turns: 'agent' });
    await openMicrophone(b);
    b.timers.advance(30_000);
    expect(b.microphone.closed).toBe(1);
    b.microphone.slow = true;
    b.app.press();
    expect(talk(b).held).toBeNull();
    b.microphone.answer();
    await settle();
    expect(talk(b).held).toBe('voice');
    // and one that was let go before begins none
    b.app.stop();
    b.app.hidden();
    b.app.press();
    b.app.release();
    b.microphone.answer();
    await settle();
    expect(talk(b).held).toBeNull();
  });

  test('another device is taken from the next press on', async () => {
    const b = await bench({ turns: 'agent' });
    await openMicrophone(b);
    b.app.change({ deviceId: 'usb' });
    expect(b.microphone.closed).toBe(1);
    b.app.press();
    await settle();
    expect(b.microphone.opened).toEqual(['', 'usb']);
    expect(b.stored.get('vela.device')).toBe('usb');
  });

  test('deterministic turns give it back', async () => {
    const b = await bench({ turns: 'agent' });
    await openMicrophone(b);
    b.app.setTurns('deterministic');
    expect(b.microphone.closed).toBe(1);
  });
});
