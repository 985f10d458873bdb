import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { bench } from '../../state/fakes';
import type { App } from '../../state/app';
import type { Source } from '../../client/sources';
import { FakeTimers } from '../../client/fakes';
import { Consent } from '../../state/consent';
import { entryOf } from '../../state/timeline';
import { Watch } from '../../state/watch';
import { readSignal } from '../../client/signal';
import { Detail } from './Detail';
import { Json } from './json';
import { SignalRows } from './rows';
import { SourceCard } from './SourceCard';

let root: HTMLElement;

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  void act(() => render(null, root));
  root.remove();
  vi.restoreAllMocks();
});

interface Call {
  method: string;
  path: string;
  body: unknown;
}

function watching(refusal?: string) {
  const calls: Call[] = [];
  const stored = new Map<string, string>();
  const fetch = (async (path: string, { method, body }: RequestInit) => {
    calls.push({ method: method!, path, body: body === undefined ? undefined : JSON.parse(body as string) });
    return refusal === undefined ? new Response('{}') : new Response(JSON.stringify({ message: refusal }), { status: 409 });
  }) as typeof globalThis.fetch;
  const consent = new Consent({ getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => void stored.set(k, v) });
  const watch = new Watch({ token: () => null, fetch, timers: new FakeTimers(), consent, frame: () => {} });
  return { watch, calls, stored };
}

function add(watch: Watch, type: string, payload: Record<string, unknown> = {}, rest: Record<string, unknown> = {}): void {
  const text = JSON.stringify({ id: 'i', type, timestamp: 1_700_000_000_000, source: 'a', ...rest, payload });
  watch.timeline.add(entryOf(readSignal(text)!, text));
}

const source = (change: Partial<Source> = {}): Source => ({
  id: 'local:openclaw',
  name: 'OpenClaw',
  colour: '#e5484d',
  protocol: 'openclaw',
  url: 'ws://127.0.0.1:18789',
  local: true,
  state: 'disconnected',
  error: '',
  perSecond: 0,
  models: [],
  model: '',
  needsKey: true,
  hasKey: false,
  tokenAutoFilled: false,
  ...change,
});

const button = (name: string): HTMLButtonElement => [...root.querySelectorAll('button')].find((b) => b.textContent!.trim().startsWith(name)) as HTMLButtonElement;
const press = (name: string) => act(async () => button(name).click());
const type = (field: HTMLInputElement | HTMLTextAreaElement, text: string) =>
  act(() => {
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });

describe('a source', () => {
  const show = async (watch: Watch, it: Source, app?: App): Promise<void> => {
    const of = app ?? (await bench({ turns: 'agent' })).app;
    await act(() => render(<ul>{<SourceCard app={of} watch={watch} source={it} />}</ul>, root));
  };

  test.each([
    ['disconnected', 'Connect'],
    ['connecting', ''],
    ['connected', ''],
    ['error', 'Connect'],
    ['unavailable', ''],
  ] as const)('that is %s says so in a word beside its mark', async (state, offers) => {
    await show(watching().watch, source({ state, error: state === 'error' ? 'The server refused the key (401).' : '' }));
    expect(root.querySelector('.state')!.textContent).toBe(state);
    expect(root.querySelector<HTMLElement>('.dot')!.dataset.look).toBe(state);
    expect(root.querySelector('.acts')?.textContent ?? '').toBe(offers);
    expect(root.querySelector('.wrong')?.textContent ?? '').toBe(state === 'error' ? 'The server refused the key (401).' : '');
    expect(root.querySelector<HTMLButtonElement>('.head')!.disabled).toBe(state === 'unavailable');
  });

  test('a key is typed, sent, and never shown again', async () => {
    const { watch, calls } = watching();
    await show(watch, source({ hasKey: true, tokenAutoFilled: true }));
    await press('OpenClaw');
    const field = root.querySelector<HTMLInputElement>('input[type=password]')!;
    expect([field.value, root.querySelector('.tag.ok')!.textContent]).toEqual(['', 'token auto-filled']);
    expect(button('Replace').disabled).toBe(true);
    await type(field, ' s3cret ');
    await act(async () => void field.form!.dispatchEvent(new Event('submit', { cancelable: true })));
    expect(field.value).toBe('');
    expect(document.body.innerHTML).not.toContain('s3cret');
    await press('Paste from config');
    await press('Forget it');
    const at = '/api/sources/local%3Aopenclaw/key';
    expect(calls).toEqual([
      { method: 'PUT', path: at, body: { key: 's3cret' } },
      { method: 'POST', path: `${at}/paste`, body: undefined },
      { method: 'PUT', path: at, body: { key: '' } },
    ]);
  });

  test('it is shown in the conversation, where that may see it, and not any more when it is removed', async () => {
    const b = await bench({ turns: 'agent' });
    const { watch } = watching();
    const it = source({ id: 'remote:1', name: 'Lab', local: false });
    await show(watch, it, b.app);
    await press('Lab');
    await act(() => b.socket().greet('session-1', { features: ['signals'] }));
    await press('Show in');
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'session.start', payload: { follow: ['remote:1'] } });
    expect(button('Shown in').getAttribute('aria-pressed')).toBe('true');
    await act(() => b.socket().greet('session-1', { features: ['signals'], follow: ['remote:1'] }));
    await press('Remove');
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'session.start', payload: { follow: [] } });
    const many = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`remote:${i + 2}`, 'x']));
    await act(() => b.app.change({ follow: many }));
    expect([button('Show in').disabled, root.querySelector('#source-remote-1-follow')!.textContent]).toEqual([true, 'Off: 16 sources are shown already.']);
  });

  test('what the gateway refuses is told where it was asked', async () => {
    const { watch } = watching('It is not there any more.');
    await show(watch, source());
    await press('Connect');
    await act(() => new Promise((done) => setTimeout(done))); // an answer is read in its own time
    expect(root.querySelector('[role=alert]')!.textContent).toBe('It is not there any more.');
  });

  test('a model is chosen, asked, and stopped; only a remote source can be removed', async () => {
    const { watch, calls } = watching();
    await show(watch, source({ id: 'r', protocol: 'openai', local: false, state: 'connected', models: ['m1', 'm2'], model: 'm1' }));
    const select = root.querySelector('select')!;
    await act(() => {
      select.value = 'm2';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    });
    await press('OpenClaw');
    await type(root.querySelector('textarea')!, 'Hello');
    await act(async () => void root.querySelector('textarea')!.form!.dispatchEvent(new Event('submit', { cancelable: true })));
    await press('Stop');
    await press('Disconnect');
    await press('Remove');
    expect(calls.map((c) => [c.method, c.path, c.body])).toEqual([
      ['PUT', '/api/sources/r/model', { model: 'm2' }],
      ['POST', '/api/sources/r/prompt', { text: 'Hello' }],
      ['POST', '/api/sources/r/stop', undefined],
      ['POST', '/api/sources/r/disconnect', undefined],
      ['DELETE', '/api/sources/r', undefined],
    ]);
    expect(button('Paste from config')).toBeUndefined();
  });

  const claude = source({ id: 'local:claude-code', name: 'Claude Code', protocol: 'sse', needsKey: false, url: '' });

  test('Claude Code asks once before hooks are written, and a no is a no', async () => {
    const { watch, calls, stored } = watching();
    await show(watch, claude);
    expect(root.querySelector('.consent')!.textContent).toContain('.claude/settings.local.json');
    expect(button('Connect')).toBeUndefined();
    await press('Not now');
    expect([calls, stored.get('vela.hooks'), root.querySelector('.consent')]).toEqual([[], 'no', null]);
    await press('Connect'); // who wants it after all is asked again
    expect(calls).toEqual([]);
    await press('Write them and connect');
    expect([calls.map((c) => c.path), stored.get('vela.hooks')]).toEqual([['/api/sources/local%3Aclaude-code/connect'], 'always']);
  });

  test('who has agreed is not asked again; who takes it off does not have it back by itself', async () => {
    const { watch, calls, stored } = watching();
    watch.consent.set('always');
    await show(watch, { ...claude, state: 'connected' });
    await press('Claude Code');
    await press('Disconnect');
    expect(stored.get('vela.hooks')).toBe('by hand');
    await show(watch, claude);
    await press('Connect');
    expect([calls.map((c) => c.path.split('/').at(-1)), stored.get('vela.hooks')]).toEqual([['disconnect', 'connect'], 'always']);
  });
});

describe('the list', () => {
  function list(count: number) {
    const { watch } = watching();
    for (let i = 0; i < count; i++) add(watch, 'deploy', { n: i }, { correlationId: i % 10 === 5 ? 'c' : undefined });
    // Nothing has a size here: what is in sight, and how far it is scrolled, are told.
    let top = 0;
    Object.defineProperty(root, 'scrollTop', { configurable: true, get: () => top, set: (to: number) => (top = Math.max(0, Math.min(to, Math.max(0, watch.timeline.length * 44 - 440)))) });
    const opened = vi.fn();
    const rows = new SignalRows(root, watch, 44, opened);
    rows.resize(440);
    const shown = (): string[] =>
      [...root.querySelectorAll<HTMLElement>('.signal:not([hidden])')].sort((a, b) => Number(a.getAttribute('aria-rowindex')) - Number(b.getAttribute('aria-rowindex'))).map((r) => r.querySelector('.summary')!.textContent!);
    return { watch, rows, shown, opened };
  }

  test('ten thousand rows are a few elements, and the newest are in sight', () => {
    const { shown } = list(10_000);
    expect(root.querySelectorAll('.signal').length).toBeLessThan(30);
    expect(root.getAttribute('aria-rowcount')).toBe('10000');
    expect(shown().at(-1)).toBe('n 9999');
  });

  test('it follows what comes, unless it is held; then it stays where it is, also when what was before it goes', () => {
    const { watch, rows, shown } = list(10_000);
    add(watch, 'deploy', { n: 10_000 });
    rows.draw();
    expect(shown().at(-1)).toBe('n 10000');
    watch.pause();
    rows.reveal(4000);
    const before = shown()[4];
    for (let i = 0; i < 500; i++) add(watch, 'deploy', { n: -1 });
    rows.draw();
    expect(shown()[4]).toBe(before);
  });

  test('scrolling away holds it; scrolling to the end follows again', () => {
    const { watch, rows } = list(100);
    root.scrollTop = 1000;
    root.dispatchEvent(new Event('scroll'));
    expect(watch.timeline.hold).toBe('scrolled');
    rows.draw();
    root.scrollTop = 1e9;
    root.dispatchEvent(new Event('scroll'));
    expect(watch.timeline.hold).toBeNull();
  });

  test('a press selects; what belongs together is marked, from the first to the last', () => {
    const { watch, rows, opened } = list(100);
    rows.draw();
    const row = [...root.querySelectorAll<HTMLElement>('.signal:not([hidden])')].find((r) => r.querySelector('.summary')!.textContent === 'n 95')!;
    row.click();
    watch.timeline.select(watch.timeline.selected); // as it is drawn in the next frame
    rows.draw();
    expect(opened).toHaveBeenCalled();
    expect(watch.selected.value!.summary).toBe('n 95');
    expect([row.getAttribute('aria-selected'), row.dataset.episode]).toEqual(['true', 'in last']);
    expect(root.getAttribute('aria-activedescendant')).toBe(row.id);
    const other = [...root.querySelectorAll<HTMLElement>('.signal:not([hidden])')].find((r) => r.querySelector('.summary')!.textContent === 'n 90')!;
    expect([other.getAttribute('aria-selected'), other.dataset.episode]).toEqual(['false', 'by']);
  });

  test('a signal is text, whatever it says', () => {
    const { watch, rows } = list(0);
    add(watch, '<b>x</b>', { html: '<img src=x onerror=alert(1)>' }, { source: '<i>' });
    rows.draw();
    expect(root.querySelector('img, b, i')).toBeNull();
    expect(root.textContent).toContain('<img src=x onerror=alert(1)>');
  });
});

describe('one signal', () => {
  test('its JSON is text, in bounds, and turned round by nothing', async () => {
    const deep = JSON.parse('['.repeat(40) + ']'.repeat(40));
    await act(() => render(<Json value={{ html: '<img src=x>', turned: 'a\u202eb', n: 1.5, none: null, list: [true, {}], deep }} />, root));
    const text = root.textContent!;
    expect(root.querySelector('img')).toBeNull();
    expect(text).toContain('"html": "<img src=x>"');
    expect(text).toContain('a⟨U+202E⟩b');
    expect(text).toContain('"list": [\n    true,\n    {}\n  ]');
    expect(text).toContain('[ … ]');
    await act(() => render(<Json value={Array.from({ length: 5000 }, (_, i) => i)} />, root));
    expect(root.textContent).toContain('… and more');
    expect(root.querySelectorAll('b').length).toBeLessThan(1001);
  });

  test('it shows the pieces of a run as one text, and the episode with its times', async () => {
    const { watch } = watching();
    const at = (ms: number) => ({ timestamp: 1_700_000_000_000 + ms, correlationId: 'c' });
    add(watch, 'tool_call', { toolName: 'Grep', agentId: 'x', input: { pattern: 'tide' } }, at(0));
    add(watch, 'text_delta', { agentId: 'x', content: 'one ' }, at(61));
    add(watch, 'text_delta', { agentId: 'x', content: 'two' }, at(1400));
    await act(() => render(<Detail watch={watch} row={watch.timeline.row(1)!} onClose={() => {}} />, root));
    expect(root.querySelector('.whole-text')!.textContent).toBe('one two');
    expect(root.textContent).toContain('Episode, 3 signals in 1.4 s');
    expect([...root.querySelectorAll('.episode li')].map((li) => [li.querySelector('.ms')!.textContent, li.querySelector('.what')!.textContent, li.getAttribute('aria-current')])).toEqual([
      ['0', 'tool_call Grep tide', null],
      ['61', 'text_delta 2 pieces', 'true'],
    ]);
    await press('Only this episode');
    expect(watch.filter.value.correlation).toBe('c');
  });
});
