import { describe, expect, test, vi } from 'vitest';
import { FakeTimers } from '../client/fakes';
import { readCommand } from '../client/command';
import { Outcome, wordsOf } from './outcome';

/** A gateway whose stream the test writes. */
function listening() {
  let to: ReadableStreamDefaultController<Uint8Array>;
  const asked: string[] = [];
  const fetch = (async (url: string) => {
    asked.push(url);
    return new Response(new ReadableStream<Uint8Array>({ start: (controller) => void (to = controller) }));
  }) as unknown as typeof globalThis.fetch;
  const timers = new FakeTimers();
  const outcome = new Outcome({ token: () => null, timers, fetch });
  const say = (...commands: unknown[]) => to.enqueue(new TextEncoder().encode(commands.map((c) => `data: ${JSON.stringify(c)}\n\n`).join('')));
  /** The stream reads when it gets to it, and what it has read is shown some time after that. */
  const see = (look: () => void) =>
    vi.waitFor(() => {
      timers.advance(250);
      look();
    }, 30_000);
  return { outcome, timers, asked, say, see };
}

const dispatch = (n: number) => ({ command: 'dispatch', performance: n, choreography: 'bell', type: 'error', signalType: 'error', payload: { n } });
const bell = (n: number) => ({ about: 'bell', words: `for error, 0 steps {"n":${n}}` });

describe('what comes out of a run', { timeout: 60_000 }, () => {
  test('is kept the newest first, shown a moment later, and counted from the start of each run', async () => {
    const { outcome, asked, say, see } = listening();
    outcome.start();
    expect(outcome.shown.value.following.state).toBe('connecting');
    await see(() => expect(outcome.shown.value).toMatchObject({ lines: [], following: { state: 'open' } }));
    expect(asked).toEqual(['/__commands__/stream']);
    const draws: number[] = [];
    outcome.shown.subscribe(({ lines }) => void draws.push(lines.length));
    say({ command: 'started' }, dispatch(1), dispatch(2), { command: 'assignment', entity: 'lamp', property: 'opacity', value: 0.5 });
    await see(() => expect(outcome.shown.value.lines.map((l) => l.name)).toEqual(['assignment', 'dispatch', 'dispatch', 'started']));
    expect(outcome.shown.value.lines).toMatchObject([{ number: 4, about: 'lamp.opacity' }, bell(2), bell(1), { number: 1 }]);
    expect(outcome.shown.value).toMatchObject({ dispatches: 2, interrupts: 0, assignments: 1 });
    expect(draws).toEqual([0, 4]);
    say({ command: 'stopped', entities: [] }, { command: 'started' }, 'nothing', { command: 'later' }, { command: 'interrupt', correlationId: 'c', performances: [1] });
    await see(() => expect(outcome.shown.value.lines.map((l) => l.name)).toEqual(['interrupt', 'started', 'stopped', 'assignment', 'dispatch', 'dispatch', 'started']));
    expect(outcome.shown.value).toMatchObject({ dispatches: 0, interrupts: 1, assignments: 0 });
    outcome.stop();
    expect(outcome.shown.value).toMatchObject({ following: { state: 'off' }, lines: { length: 7 } });
  });

  test('is bounded, and held while it is paused', async () => {
    const { outcome, say, see } = listening();
    outcome.start();
    await see(() => expect(outcome.shown.value.following.state).toBe('open'));
    say(...Array.from({ length: 120 }, (_, i) => dispatch(i)));
    await see(() => expect(outcome.shown.value.lines.map((l) => l.number)).toEqual(Array.from({ length: 50 }, (_, i) => 120 - i)));
    outcome.pause(true);
    say(dispatch(7));
    await see(() => expect(outcome.shown.value).toMatchObject({ dispatches: 121, paused: true }));
    expect(outcome.shown.value.lines[0]).toMatchObject({ number: 120 });
    outcome.pause(false);
    expect(outcome.shown.value.lines[0]).toMatchObject({ number: 121 });
    outcome.stop();
  });
});

describe('words', () => {
  test.each([
    [{ ...dispatch(1), type: '__f:bell', steps: [{}] }, 'bell', 'for error as __f:bell, 1 step {"n":1}'],
    [{ command: 'dispatch' }, '', 'for , 0 steps'],
    [{ command: 'interrupt', correlationId: 'c\u202e', performances: [1, 2] }, 'c⟨U+202E⟩', '2 performances end'],
    [{ command: 'interrupt', performances: 'x' }, '', '0 performances end'],
    [{ command: 'assignment', entity: 'lamp', property: 'x', value: { x: 1 }, transition: { from: 1 / 3, durationMs: 500 } }, 'lamp.x', '{"x":1} from 0.333 in 500 ms'],
    [{ command: 'assignment', entity: 'lamp', property: 'speech', value: 'a', append: true }, 'lamp.speech', '"a", appended'],
    [{ command: 'stopped', entities: [{}] }, '', 'Run mode is over, 1 entity is as before.'],
    [{ command: 'started' }, '', 'Run mode begins.'],
  ])('%j', (command, about, words) => expect(wordsOf(readCommand(JSON.stringify(command))!)).toEqual({ about, words }));

  test.each(['', '{', '7', 'null', '{"command":"later"}', '{"command":7}'])('%s is no command', (text) => expect(readCommand(text)).toBeNull());
});
