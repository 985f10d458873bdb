import { describe, expect, test } from 'vitest';
import { readSignal } from '../client/signal';
import { kinds, kindOf } from './kinds';
import { Ring } from './ring';
import { summary } from './summary';
import { entryOf, Timeline, wholeOf } from './timeline';

let made = 0;

function entry(type: string, payload: Record<string, unknown> = {}, rest: Record<string, unknown> = {}) {
  const text = JSON.stringify({ id: `s${made++}`, type, timestamp: 1000 + made, source: 'a', ...rest, payload });
  return entryOf(readSignal(text)!, text);
}

const delta = (content: string, rest: Record<string, unknown> = {}) => entry('text_delta', { agentId: 'x', content }, rest);
const rows = (t: Timeline): string[] => Array.from({ length: t.length }, (_, i) => `${t.row(i)!.entry.type} ${t.row(i)!.summary}${t.row(i)!.count > 1 ? ` ×${t.row(i)!.count}` : ''}`.trim());

describe('the ring', () => {
  test('keeps the last ones, and gives them by number', () => {
    const ring = new Ring<{ chars: number; n: number }>(3, 1000);
    for (let n = 0; n < 5; n++) expect(ring.push({ chars: 1, n })).toBe(n);
    expect([ring.first, ring.end, ring.length]).toEqual([2, 5, 3]);
    expect([1, 2, 4, 5].map((n) => ring.at(n)?.n)).toEqual([undefined, 2, 4, undefined]);
  });

  test('keeps fewer where they are long, and always the last one', () => {
    const ring = new Ring<{ chars: number }>(100, 10);
    for (const chars of [4, 4, 4]) ring.push({ chars });
    expect(ring.length).toBe(2);
    ring.push({ chars: 50 });
    expect(ring.length).toBe(1);
    ring.push({ chars: 1 });
    expect(ring.length).toBe(1);
  });
});

describe('rows', () => {
  test('pieces of one text are one row; another signal of the source ends it, one of another source does not', () => {
    const t = new Timeline();
    t.add(delta('one '));
    t.add(entry('tool_call', { toolName: 'Grep', input: { pattern: 'x' } }, { source: 'b' }));
    t.add(delta('two'));
    t.add(entry('token_usage', { promptTokens: 1204, completionTokens: 88 }));
    t.add(delta('three'));
    expect(rows(t)).toEqual(['text_delta one two ×2', 'tool_call Grep x', 'token_usage 1,204 in, 88 out', 'text_delta three']);
    expect(t.pieces(t.row(0)!).map((e) => e.summary)).toEqual(['one ', 'two']);
  });

  test('texts of other episodes, agents and types are other rows', () => {
    const t = new Timeline();
    t.add(delta('a', { correlationId: '1' }));
    t.add(delta('b', { correlationId: '2' }));
    t.add(entry('text_delta', { agentId: 'y', content: 'c' }, { correlationId: '2' }));
    t.add(entry('thinking', { agentId: 'y', content: 'd' }, { correlationId: '2' }));
    expect(t.length).toBe(4);
  });

  test('a row goes with the first signal that it stands for, and the list is counted as that much shorter', () => {
    const t = new Timeline(undefined, 10);
    for (let i = 0; i < 25; i++) t.add(entry('deploy', { n: i }));
    expect([t.length, t.kept, t.gone]).toEqual([10, 10, 15]);
    expect(t.row(0)!.summary).toBe('n 15');
    for (let i = 0; i < 25; i++) t.add(delta('.'));
    expect(t.length).toBeGreaterThan(0);
    expect(t.row(0)!.entry.number).toBeGreaterThanOrEqual(t.row(0)!.last - 20);
    expect(t.kept).toBe(10);
  });

  test('memory does not grow with what comes', () => {
    const t = new Timeline(undefined, 100);
    for (let i = 0; i < 20_000; i++) t.add(i % 3 === 0 ? delta('x') : entry('deploy', { n: i }));
    expect(t.kept).toBe(100);
    expect(t.length).toBeLessThanOrEqual(100);
    expect(t.gone).toBeGreaterThan(10_000);
  });
});

describe('what is to be seen', () => {
  test('heartbeats are hidden unless asked for', () => {
    const t = new Timeline();
    t.add(entry('event', { _meta: { heartbeat: true } }));
    t.add(entry('event', { _meta: { cron: true, cronJobId: 'j' } }));
    t.add(entry('event', { at: 'noon' }));
    expect(rows(t)).toEqual(['event at noon']);
    t.setFilter({ kinds: new Set(kinds) });
    expect(t.length).toBe(3);
  });

  test('finding looks into the type, the source, its name and the payload, whatever the case, and not into the envelope', () => {
    const t = new Timeline((e) => (e.source === 'adapter:tap' ? 'Claude Code' : e.source));
    t.add(entry('tool_call', { toolName: 'Edit', input: { path: 'session/fsm.go' } }, { source: 'adapter:tap', metadata: { secret: 'hidden' } }));
    t.add(entry('deploy.done', { deep: { er: ['Marble'] } }));
    const found = (find: string): number => {
      t.setFilter({ find });
      return t.length;
    };
    expect(found('EDIT')).toBe(1);
    expect(found('claude code')).toBe(1);
    expect(found('deploy')).toBe(1);
    expect(found('marble')).toBe(1);
    expect(found('timestamp')).toBe(0);
    expect(found('hidden')).toBe(0);
    expect(found('a.b')).toBe(0); // it is no pattern
    expect(found('(')).toBe(0);
    expect(found('  ')).toBe(2);
  });

  test('filters hold for what comes as for what was there', () => {
    const t = new Timeline();
    t.setFilter({ kinds: new Set(['tools']) });
    t.add(delta('x'));
    t.add(entry('tool_call', { toolName: 'Grep' }, { correlationId: 'c' }));
    t.add(entry('tool_call', { toolName: 'Edit' }));
    expect(rows(t)).toEqual(['tool_call Grep', 'tool_call Edit']);
    t.setFilter({ correlation: 'c' });
    expect(rows(t)).toEqual(['tool_call Grep']);
  });
});

describe('holding', () => {
  test('a selection holds the list, and counts what is newer; following goes on with all of it', () => {
    const t = new Timeline();
    t.add(delta('a'));
    t.add(entry('deploy'));
    t.select(t.row(1)!);
    expect(t.hold).toBe('selected');
    t.add(entry('deploy'));
    t.add(delta('b'));
    t.add(entry('event', { _meta: { heartbeat: true } }));
    expect([t.length, t.newer]).toEqual([2, 2]);
    expect(t.row(2)).toBeUndefined();
    t.follow();
    expect([t.length, t.newer, t.hold, t.selected]).toEqual([4, 0, null, null]);
  });

  test('a run that was held does not grow', () => {
    const t = new Timeline();
    t.add(delta('a'));
    t.stand('paused');
    t.add(delta('b'));
    expect(rows(t)).toEqual(['text_delta a']);
    t.follow();
    expect(rows(t)).toEqual(['text_delta a', 'text_delta b']);
  });

  test('who selects while it is paused keeps it paused, from when that began', () => {
    const t = new Timeline();
    t.add(entry('deploy'));
    t.stand('paused');
    t.add(entry('deploy'));
    t.select(t.row(0)!);
    expect([t.hold, t.length, t.newer]).toEqual(['paused', 1, 1]);
  });

  test('another filter does not let go of it', () => {
    const t = new Timeline();
    for (const type of ['deploy', 'user.click', 'deploy']) t.add(entry(type, { target: 'x' }));
    t.select(t.row(1)!);
    t.add(entry('deploy', { target: 'later' }));
    t.setFilter({ find: 'deploy' });
    expect([t.length, t.newer, t.hold]).toEqual([2, 1, 'selected']);
    t.setFilter({ find: '' });
    expect([t.length, t.newer, t.indexOf(t.selected)]).toEqual([3, 1, 1]);
  });

  test('what is held goes as what is kept goes, and what is selected can be looked at all the same', () => {
    const t = new Timeline(undefined, 5);
    for (let i = 0; i < 5; i++) t.add(entry('deploy', { n: i }));
    const row = t.row(0)!;
    t.select(row);
    for (let i = 0; i < 3; i++) t.add(entry('deploy'));
    expect([t.length, t.indexOf(row)]).toEqual([2, -1]);
    for (let i = 0; i < 5; i++) t.add(entry('deploy'));
    expect(t.length).toBe(0);
    expect(wholeOf(t.selected!.entry)!.payload).toEqual({ n: 0 });
  });
});

test('an episode is all that is kept and belongs together', () => {
  const t = new Timeline();
  for (const correlationId of ['a', 'b', 'a', undefined]) t.add(entry('deploy', {}, { correlationId }));
  expect(t.episode('a').map((e) => e.number)).toEqual([0, 2]);
  expect(t.episode('')).toEqual([]);
});

describe('a signal in one line', () => {
  test.each([
    ['tool_call', { toolName: 'Bash', input: { timeout: 5, command: 'go test' } }, 'Bash go test'],
    ['tool_call', { toolName: 'Odd', input: { n: 5, b: true } }, 'Odd n 5, b true'],
    ['tool_result', { toolName: 'Edit', success: false, output: { response: { filePath: 'x.go', replaced: 1 } } }, 'Edit, failed, filePath x.go, replaced 1'],
    ['agent_state_change', { from: 'idle', to: 'acting', reason: 'approval' }, 'idle to acting, approval'],
    ['error', { message: 'gone', code: 'E1' }, 'gone (E1)'],
    ['completion', { success: false, result: 'cut' }, 'not done, cut'],
    ['task_dispatch', { from: 'a', to: 'b', description: 'do it' }, 'a to b: do it'],
    ['midi.note_on', { channel: 1, note: 60, velocity: 100, raw: [144] }, 'channel 1, note 60, velocity 100'],
    ['user.command', { action: 'open', entityId: 'door' }, 'open door'],
    ['toString', { a: 'b' }, 'a b'],
    ['deploy', { a: { b: 1 } }, ''],
    ['error', { message: 'a\u202eb' }, 'a⟨U+202E⟩b'],
    ['error', { message: 'x'.repeat(5000) }, `${'x'.repeat(200)}…`],
  ])('%s', (type, payload, line) => expect(summary(type, payload)).toBe(line));

  test.each([
    ['user.point', 'user'],
    ['midi.pitch_bend', 'midi'],
    ['token_usage', 'usage'],
    ['constructor', 'custom'],
  ] as const)('%s is of kind %s', (type, kind) => expect(kindOf(type, {})).toBe(kind));
});
