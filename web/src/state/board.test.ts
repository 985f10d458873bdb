import { describe, expect, test } from 'vitest';
import { readRun, readWiring } from '../client/run';
import { boardOf, clauseWords, filterWords, linksOf, passingWords, thickness } from './board';

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
  const board = boardOf(wiring, null);
  expect(board.ways).toMatchObject([
    { id: 'w', type: 'tool_call', to: 'lantern', from: [{ source: 'local:claude-code', came: null }], count: null },
    { id: 'v', type: 'deploy', to: 'lantern', from: null, count: null },
    { id: 'own:bell', type: 'error', to: 'bell', from: null, count: null },
  ]);
  expect(board.types).toEqual(['tool_call', 'deploy', 'error']);
  expect(board.goals[0]).toMatchObject({ id: 'lantern', onward: ['shader glow:amount'], bindings: [{ property: 'opacity', entity: 'lamp' }] });
});

test('what a run counts stands at its wires, their filters, their sources and what is reached', () => {
  const sample = { seen: 8, passed: 2 };
  const run = readRun({
    running: true,
    wires: [{ id: 's', seen: 8, passed: 8 }, { id: 'w', ...sample, filters: [sample] }, { id: 'v', seen: 3, passed: 3 }],
    choreographies: [{ id: 'lantern', seen: 5, performed: 4 }, { id: 'bell', seen: 7, performed: 7 }],
  });
  const board = boardOf(wiring, run);
  expect(board.ways.map((w) => w.count)).toEqual([{ ...sample, filters: [sample] }, { seen: 3, passed: 3, filters: [] }, { seen: 7, passed: 7, filters: [] }]);
  expect(board.ways[0]!.from).toEqual([{ source: 'local:claude-code', came: 8 }]);
  expect(board.goals.map((g) => g.count)).toEqual([{ seen: 5, performed: 4 }, { seen: 7, performed: 7 }]);
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

  test('a chain has a line for each filter, and one for those that have no room', () => {
    const filters = [{ type: 'sample', every: 4 }, { type: 'throttle', intervalMs: 9 }, { type: 'map' }];
    const filtersCount = [{ seen: 9, passed: 8 }, { seen: 8, passed: 5 }, { seen: 5, passed: 3 }];
    const way = { filters, count: { seen: 9, passed: 3, filters: filtersCount } };
    expect(linksOf(way, 3).map((l) => [l.words, passingWords(l.count)])).toEqual([['sample one of 4', '9 to 8'], ['throttle one in 9 ms', '8 to 5'], ['map ', '5 to 3']]);
    expect(linksOf(way, 2).map((l) => [l.words, passingWords(l.count)])).toEqual([['sample one of 4', '9 to 8'], ['2 more filters', '8 to 3']]);
    expect(linksOf({ filters, count: null }, 2).map((l) => passingWords(l.count))).toEqual(['', '']);
    // Another wiring is in force than the one that was counted.
    expect(linksOf({ filters, count: { ...way.count, filters: [] } }, 2).map((l) => l.count)).toEqual([null, null]);
    expect(passingWords({ seen: 1234, passed: 0 })).toBe('1,234 to 0');
  });
});

test('a line is thicker the more it carries, and never too thick', () => {
  expect(thickness(0)).toBe(1);
  expect(thickness(30)).toBeGreaterThan(thickness(3));
  expect(thickness(1e9)).toBe(7);
});
