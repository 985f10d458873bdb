import { expect, test } from 'vitest';
import { bench, openMicrophone, settle } from './fakes';

const heard = (app: { announcements: { value: readonly { text: string }[] } }): string[] => app.announcements.value.map((a) => a.text);

test('a whole spoken turn: the final, the phases, the answer once and whole; no partial, no streaming', async () => {
  const b = await bench({ turns: 'agent' });
  expect(heard(b.app)).toEqual(['Connecting', 'Connected']);
  await openMicrophone(b);
  b.app.press();
  b.microphone.hear(1, 2);
  b.socket().say('session.state', { value: 'listening' });
  b.socket().say('transcript.partial', { text: 'now' });
  b.timers.advance(500);
  b.app.release();
  await settle();
  expect(heard(b.app)).toEqual(['Connecting', 'Connected']);
  b.socket().say('session.state', { value: 'thinking' });
  b.socket().say('transcript.final', { text: 'Now.' });
  b.socket().say('session.state', { value: 'speaking' });
  b.socket().say('response.text.delta', { text: 'You said ' });
  b.socket().say('response.text.delta', { text: 'now.' });
  expect(heard(b.app).slice(2)).toEqual(['Thinking', 'You said: Now.', 'Speaking']);
  b.socket().say('response.completed');
  b.socket().say('session.state', { value: 'idle' });
  expect(heard(b.app).slice(-2)).toEqual(['Echo: You said now.', 'Idle']);
});

test('nothing is spoken while the microphone is open, not even a late idle', async () => {
  const b = await bench({ turns: 'agent' });
  await openMicrophone(b);
  b.app.press();
  b.socket().say('session.state', { value: 'listening' });
  b.socket().say('session.state', { value: 'idle' });
  expect(heard(b.app)).toEqual(['Connecting', 'Connected']);
});

test('a cancelled answer is not read out', async () => {
  const b = await bench();
  b.app.runMockedTurn();
  b.socket().say('session.state', { value: 'speaking' });
  b.socket().say('response.text.delta', { text: 'half' });
  b.app.stop();
  b.socket().say('session.state', { value: 'idle' });
  expect(heard(b.app).join()).not.toContain('half');
  expect(heard(b.app).at(-1)).toBe('Idle');
});

test('a lost connection is left to the banner, its return is told', async () => {
  const b = await bench();
  b.socket().end(1006);
  expect(heard(b.app)).toEqual(['Connecting', 'Connected']);
  b.timers.advance(1000);
  b.socket().greet('2');
  expect(heard(b.app)).toEqual(['Connecting', 'Connected', 'Connecting', 'Connected']);
});

test('each is told once: they have their own identity, and only a few stay', async () => {
  const b = await bench();
  for (let i = 0; i < 4; i++) {
    b.socket().say('session.state', { value: 'thinking' });
    b.socket().say('session.state', { value: 'idle' });
  }
  const ids = b.app.announcements.value.map((a) => a.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toHaveLength(5);
});
