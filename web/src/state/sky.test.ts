import { describe, expect, test } from 'vitest';
import { Meter, rateWords } from './meter';
import { identityOf, originOf } from './origin';
import { others, Sky } from './sky';

const columnsOf = (sky: Sky, key: string, span: 12_000 | 60_000 | 600_000, now: number): [number, number, boolean][] => {
  const found: [number, number, boolean][] = [];
  sky
    .lanes(now)
    .find((lane) => lane.key === key)
    ?.each(span, now, (at, count, failed) => found.push([now - at, count, failed]));
  return found.sort((a, b) => b[0] - a[0]);
};

describe('the sky', () => {
  const now = 1_000_000_000;

  test('counts what falls into one column, in every span', () => {
    const sky = new Sky();
    for (const ago of [0, 10, 400, 30_000, 300_000, 700_000]) sky.add('a', now - ago, ago === 400, now);
    expect(columnsOf(sky, 'a', 12_000, now)).toEqual([
      [400, 1, true],
      [40, 1, false],
      [0, 1, false],
    ]);
    expect(columnsOf(sky, 'a', 60_000, now).reduce((n, [, count]) => n + count, 0)).toBe(4);
    expect(columnsOf(sky, 'a', 600_000, now).reduce((n, [, count]) => n + count, 0)).toBe(5);
  });

  test('what was there goes as time goes, and does not come back', () => {
    const sky = new Sky();
    sky.add('a', now, false, now);
    expect(columnsOf(sky, 'a', 12_000, now + 11_999)).toHaveLength(1);
    expect(columnsOf(sky, 'a', 12_000, now + 12_000)).toHaveLength(0);
    sky.add('a', now + 24_000, false, now + 24_000);
    expect(columnsOf(sky, 'a', 12_000, now + 24_000)).toEqual([[0, 1, false]]);
  });

  test('a signal from the future is one of now', () => {
    const sky = new Sky();
    sky.add('a', now + 5000, false, now);
    expect(columnsOf(sky, 'a', 12_000, now)).toEqual([[0, 1, false]]);
  });

  test('a silent lane goes after ten minutes; beyond 32 they share one', () => {
    const sky = new Sky();
    for (let i = 0; i < 40; i++) sky.add(`k${i}`, now, false, now);
    expect(sky.lanes(now)).toHaveLength(33);
    expect(columnsOf(sky, others, 12_000, now)[0]![1]).toBe(8);
    expect(sky.lanes(now + 600_001)).toHaveLength(0);
    sky.add('new', now + 700_000, false, now + 700_000);
    expect(sky.lanes(now + 700_000).map((l) => l.key)).toEqual(['new']);
  });
});

describe('rates', () => {
  test('a rate is that of the last five whole seconds', () => {
    const meter = new Meter();
    for (let i = 0; i < 50; i++) meter.count(10_000 + i * 100);
    expect(meter.rate(15_000)).toBe(10);
    expect(meter.history(15_000).slice(-6)).toEqual([0, 10, 10, 10, 10, 10]);
    expect(meter.rate(17_500)).toBe(6);
    expect(meter.rate(21_000)).toBe(0);
    expect(meter.rate(1e9)).toBe(0);
  });

  test.each([
    [0, '0'],
    [0.02, '0.1'],
    [0.4, '0.4'],
    [0.97, '1'],
    [31.4, '31'],
    [1204.2, '1,204'],
  ])('%f is %s', (rate, words) => expect(rateWords(rate)).toBe(words));
});

describe('whose a signal is', () => {
  const source = { id: 'remote:1', name: 'studio', colour: '#FFB224', protocol: 'websocket', url: '', local: false, state: 'connected', error: '', perSecond: 0, models: [], model: '', needsKey: false, hasKey: false, tokenAutoFilled: false } as const;
  const sources = new Map([[source.id, source]]);
  const of = (source: string, sourceId = '', type = 'x') => originOf({ source, sourceId, type }, sources);

  test('the source that it came through says it first', () => {
    expect(of('adapter:emitter', 'remote:1')).toEqual({ key: 'remote:1', name: 'studio', identity: 'r1' });
    expect(of('claude-3', 'local:claude-code').identity).toBe('claude');
    expect(of('adapter:tap')).toMatchObject({ name: 'Claude Code', identity: 'claude' });
    expect(of('nanoKEY2', '', 'midi.note_on')).toEqual({ key: 'nanoKEY2', name: 'nanoKEY2', identity: 'midi' });
    expect(of('session:1')).toEqual(of('session:2'));
    expect(of('toString')).toEqual({ key: 'toString', name: 'toString', identity: 'posted' });
  });

  test('the colours of remote sources all have pennants of their own', () => {
    const colours = ['#4f8ef7', '#f76b15', '#30a46c', '#d6409f', '#ffb224', '#12a594', '#ab4aba', '#8d8d8d'];
    const pennants = colours.map((colour) => identityOf({ id: 'r', protocol: 'sse', colour }));
    expect(new Set(pennants).size).toBe(colours.length);
    expect(identityOf({ id: 'local:midi:1', protocol: 'midi', colour: '' })).toBe('midi');
  });
});
