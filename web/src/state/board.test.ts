import { describe, expect, test } from 'vitest';
import { readRun, readWiring } from '../client/run';
import { boardOf, chainWords, clauseWords, filterWords, thickness } from './board';

const wiring = readWiring({
  choreographies: [{ id: 'lantern', on: 'tool_call' }, { id: 'bell', on: 'error' }],
  wires: [
    { id: 's', fromZone: 'signal', fromId: 'local:claude-code', toZone: 'signal-type', toId: 'tool_call' },
    { id: 'w', fromZone: 'signal-type', fromId: 'tool_call', toZone: 'choreographer', toId: 'lantern', filters: [{ type: 'sample', every: 4 }] },
    { id: 'v', fromZone: 'signal-type', fromId: 'deploy', toZone: 'choreographer', toId: 'lantern' },
    { id: 't', fromZone: 'choreographer', fromId: 'lantern', toZone: 'shader', toId: 'glow:amount' },
  ],
  bindings: [{ id: 'b', targetEntityId: 'lamp', property: 'opacity', sourceChoreographyId: 'lantern' }],
})!;

test('wires lead from types to choreographies; without one a choreography is reached by its own type', () => {
  const run = readRun({ running: true, wires: [{ id: 'w', seen: 8, passed: 2 }] });
  const board = boardOf(wiring, run);
  expect(board.ways.map((w) => [w.id, w.type, w.to, w.from, w.seen, w.passed])).toEqual([
    ['w', 'tool_call', 'lantern', ['local:claude-code'], 8, 2],
    ['v', 'deploy', 'lantern', null, null, null],
    ['own:bell', 'error', 'bell', null, null, null],
  ]);
  expect(board.types).toEqual(['tool_call', 'deploy', 'error']);
  expect(board.goals[0]).toMatchObject({ id: 'lantern', onward: ['shader glow:amount'], bindings: [{ property: 'opacity', entity: 'lamp' }] });
});

describe('words', () => {
  test.each([
    [{ type: 'throttle', intervalMs: 500 }, 'one in 500 ms'],
    [{ type: 'sample', every: 4 }, 'one of 4'],
    [{ type: 'delta', path: 'a.b', threshold: 2 }, 'a.b moved by 2'],
    [{ type: 'when', clause: { 'signal.agentId': { equals: 'x' } } }, 'agentId = "x"'],
    [{ type: 'map', mappings: [{ from: 'a', to: 'b' }, null] }, 'a → b,  → '],
    [{ type: 'later' }, ''],
  ])('%j', (filter, words) => expect(filterWords(filter)).toBe(words));

  test('a clause says what has to hold', () => {
    expect(clauseWords([{ ok: { equals: true }, n: { gt: 1, lt: 5 } }, { name: { not: { matches: '^x' } } }])).toBe('ok = true and n > 1 and n < 5 or not name matches "^x"');
    expect(clauseWords(undefined)).toBe('');
    expect(clauseWords({ a: 7 })).toBe('');
  });

  test('a chain of one is named, of more is counted', () => {
    expect(chainWords([{ type: 'sample', every: 4 }])).toBe('sample one of 4');
    expect(chainWords([{ type: 'sample' }, { type: 'map' }])).toBe('2 filters');
  });
});

test('a line is thicker the more it carries, and never too thick', () => {
  expect(thickness(0)).toBe(1);
  expect(thickness(30)).toBeGreaterThan(thickness(3));
  expect(thickness(1e9)).toBe(7);
});
