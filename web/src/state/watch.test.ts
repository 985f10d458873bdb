import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeTimers } from '../client/fakes';
import { Consent } from './consent';
import { Watch } from './watch';

/** A gateway with two streams, and sources that do as they are told. */
class Gateway {
  asked: string[] = [];
  starts: (string | undefined)[] = [];
  streams = new Map<string, ReadableStreamDefaultController<Uint8Array>>();
  sources: Record<string, unknown>[] = [];
  answer: { status: number; body: unknown } = { status: 200, body: {} };

  fetch = (async (url: string, { method, headers, signal }: RequestInit) => {
    if (!url.endsWith('/stream')) {
      this.asked.push(`${method} ${url}`);
      return new Response(JSON.stringify(this.answer.body), { status: this.answer.status });
    }
    if (url.startsWith('/__signals__')) this.starts.push((headers as Record<string, string>)['last-event-id']);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.streams.set(url, controller);
        signal!.addEventListener('abort', () => controller.error(new Error('aborted')));
      },
    });
    return new Response(body);
  }) as typeof fetch;

  say(signal: Record<string, unknown>, id = '', missed = 0): void {
    const head = `${missed > 0 ? `: missed ${missed}\n` : ''}${id === '' ? '' : `id: ${id}\n`}`;
    this.#write('/__signals__/stream', `${head}data: ${JSON.stringify({ id: 'i', source: 'a', payload: {}, ...signal })}\n\n`);
  }

  list(...sources: Record<string, unknown>[]): void {
    this.#write('/api/sources/stream', `data: ${JSON.stringify({ sources })}\n\n`);
  }

  #write(url: string, text: string): void {
    this.streams.get(url)!.enqueue(new TextEncoder().encode(text));
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

function watching(kept?: string) {
  const gateway = new Gateway();
  const timers = new FakeTimers();
  const frames: (() => void)[] = [];
  const stored = new Map<string, string>(kept === undefined ? [] : [['vela.hooks', kept]]);
  const consent = new Consent({ getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => void stored.set(k, v) });
  const watch = new Watch({ token: () => null, fetch: gateway.fetch, timers, consent, frame: (draw) => void frames.push(draw) });
  return { gateway, timers, frames, watch, stored };
}

beforeEach(() => void vi.spyOn(performance, 'now').mockReturnValue(0));

describe('following', () => {
  test('it begins with all that is kept, stops when nobody watches, and comes back to where it was', async () => {
    const { gateway, watch } = watching();
    const first = watch.begin();
    const second = watch.begin();
    await settle();
    gateway.say({ type: 'deploy', timestamp: 1 }, 'e-1');
    await settle();
    expect(watch.counts.value).toMatchObject({ kept: 1, rows: 1 }); // before the next count
    first();
    first();
    expect(watch.following.value.state).toBe('open');
    second();
    expect(watch.following.value.state).toBe('off');
    watch.begin();
    await settle();
    expect(gateway.starts).toEqual(['0', 'e-1']);
    expect(watch.timeline.kept).toBe(1);
  });

  test('what comes in one frame is drawn once', async () => {
    const { gateway, watch, frames } = watching();
    const draw = vi.fn();
    watch.onDraw(draw);
    frames.splice(0).forEach((f) => f());
    draw.mockClear();
    watch.begin();
    await settle();
    for (let i = 0; i < 20; i++) gateway.say({ type: 'deploy', timestamp: i });
    await settle();
    expect(frames).toHaveLength(1);
    frames.splice(0).forEach((f) => f());
    expect(draw).toHaveBeenCalledTimes(1);
    expect(watch.timeline.kept).toBe(20);
  });

  test('rates count what comes now, not what was kept; nonsense is nothing', async () => {
    const { gateway, watch, timers } = watching();
    watch.begin();
    await settle();
    const now = timers.now();
    for (let i = 0; i < 10; i++) gateway.say({ type: 'tool_call', timestamp: now, payload: { toolName: 'x', agentId: 'y' } });
    gateway.say({ type: 'tool_call', timestamp: now - 60_000 }, '', 7);
    gateway.say({ type: 7 });
    await settle();
    timers.advance(1000);
    expect(watch.counts.value).toMatchObject({ perSecond: 2, kept: 11, rows: 11, newer: 0, hold: null });
    expect(watch.counts.value.ofKind).toMatchObject({ tools: 2, text: 0 });
    expect([watch.rateOf('tool_call'), watch.rateOf('tool_call', 'a'), watch.rateOf('deploy')]).toEqual([2, 2, 0]);
    expect(watch.originsOf('tool_call')).toEqual(['a']);
    expect(watch.missed.value).toBe(7);
  });

  test('a source that is known gives its name to signals that came through it', async () => {
    const { gateway, watch } = watching();
    watch.begin();
    await settle();
    gateway.say({ type: 'deploy', timestamp: 1, metadata: { sourceId: 'remote:1' } });
    await settle();
    expect(watch.originOf(watch.timeline.row(0)!.entry).name).toBe('a');
    gateway.list({ id: 'remote:1', name: 'studio', colour: '#ffb224', protocol: 'websocket' });
    await settle();
    expect(watch.originOf(watch.timeline.row(0)!.entry)).toEqual({ key: 'remote:1', name: 'studio', identity: 'r1' });
    watch.setFilter({ find: 'STUDIO' });
    expect(watch.timeline.length).toBe(1);
  });
});

describe('sources', () => {
  const claude = { id: 'local:claude-code', name: 'Claude Code', protocol: 'sse', local: true, state: 'disconnected' };

  test('Claude Code is connected by itself where that was agreed to, and once', async () => {
    const { gateway, watch } = watching('always');
    watch.begin();
    await settle();
    gateway.list(claude);
    await settle();
    gateway.list(claude);
    await settle();
    expect(gateway.asked).toEqual(['POST /api/sources/local%3Aclaude-code/connect']);
  });

  test.each([[undefined], ['by hand'], ['no'], ['nonsense']])('and not where the answer was %s', async (kept) => {
    const { gateway, watch } = watching(kept);
    watch.begin();
    await settle();
    gateway.list(claude);
    await settle();
    expect(gateway.asked).toEqual([]);
  });

  test('what the gateway answers is shown before its stream says it; what it refuses is told', async () => {
    const { gateway, watch } = watching();
    watch.begin();
    await settle();
    gateway.list(claude);
    await settle();
    gateway.answer.body = { ...claude, state: 'connecting' };
    expect(await watch.act(watch.sources.connect(claude.id))).toBe('');
    expect(watch.known.value.get(claude.id)!.state).toBe('connecting');
    const late = watch.act(watch.sources.connect(claude.id)); // its answer comes behind what the stream says of it
    gateway.list({ ...claude, state: 'connected' });
    await late;
    await settle();
    expect(watch.known.value.get(claude.id)!.state).toBe('connected');
    gateway.answer = { status: 409, body: { message: 'It is not there.' } };
    expect(await watch.act(watch.sources.connect(claude.id))).toBe('It is not there.');
  });

  test('the answer is remembered', () => {
    const { watch, stored } = watching();
    expect(watch.consent.state.value).toBe('unasked');
    watch.consent.set('always');
    expect(stored.get('vela.hooks')).toBe('always');
    const closed = new Consent({
      getItem: () => {
        throw new Error('closed');
      },
      setItem: () => {
        throw new Error('closed');
      },
    });
    closed.set('no');
    expect(closed.state.value).toBe('no');
  });
});
