import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { beginning, EventParser, EventStream, type Following, type ServerSent } from './events';
import { FakeTimers } from './fakes';

/** A gateway that answers a fetch with a stream that the test writes. */
class Gateway {
  asked: { url: string; headers: Record<string, string>; signal: AbortSignal }[] = [];
  streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  status = 200;

  fetch = (async (url: string, { headers, signal }: RequestInit) => {
    this.asked.push({ url, headers: headers as Record<string, string>, signal: signal! });
    if (this.status !== 200) return new Response(JSON.stringify({ message: 'Only a server key may.' }), { status: this.status });
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.streams.push(controller);
        signal!.addEventListener('abort', () => controller.error(new Error('aborted')));
      },
    });
    return new Response(body);
  }) as typeof fetch;

  say(text: string): void {
    this.streams.at(-1)!.enqueue(new TextEncoder().encode(text));
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

function following(options: { token?: string; from?: string; status?: number } = {}) {
  const gateway = new Gateway();
  gateway.status = options.status ?? 200;
  const timers = new FakeTimers();
  const events: ServerSent[] = [];
  const states: Following[] = [];
  const stream = new EventStream({
    url: '/stream',
    token: () => options.token ?? null,
    timers,
    random: () => 1,
    fetch: gateway.fetch,
    ...(options.from !== undefined && { from: options.from }),
    onEvents: (batch) => events.push(...batch),
    onState: (state) => states.push(state),
  });
  stream.start();
  return { gateway, timers, events, states, stream };
}

describe('reading', () => {
  test('an event is whole wherever the network cuts it', () => {
    const text = ': connected\n\nid: e-1\ndata: {"a":"\u00e9"}\n\n: missed 7\nid: e-2\ndata: two\ndata: lines\n\n: still here\n\n';
    for (let cut = 0; cut <= text.length; cut++) {
      const parser = new EventParser();
      expect([...parser.read(text.slice(0, cut)), ...parser.read(text.slice(cut))]).toEqual([
        { id: 'e-1', data: '{"a":"\u00e9"}', missed: 0 },
        { id: 'e-2', data: 'two\nlines', missed: 7 },
      ]);
    }
  });

  test('what never ends is given up', () => {
    const parser = new EventParser();
    const piece = `data: ${'x'.repeat(2 ** 19)}`;
    parser.read(piece);
    expect(() => parser.read(piece)).toThrow('without an end');
  });
});

describe('following', () => {
  // How long a piece of work took is measured by another clock.
  beforeEach(() => void vi.spyOn(performance, 'now').mockReturnValue(0));
  afterEach(() => void vi.restoreAllMocks());

  test('it shows its token, begins where it is told, and comes back to where it was', async () => {
    const { gateway, timers, events, states } = following({ token: 'secret', from: beginning });
    await settle();
    expect(gateway.asked[0]).toMatchObject({ url: '/stream', headers: { authorization: 'Bearer secret', 'last-event-id': '0' } });
    gateway.say('id: e-5\ndata: a\n\n');
    await settle();
    expect(events.map((e) => e.data)).toEqual(['a']);
    gateway.streams[0]!.close();
    await settle();
    expect(states.map((s) => s.state)).toEqual(['connecting', 'open', 'waiting']);
    timers.advance(2000);
    await settle();
    expect(gateway.asked[1]!.headers['last-event-id']).toBe('e-5');
  });

  test.each([401, 403, 404])('a gateway that answers %i is not asked again', async (status) => {
    const { gateway, timers, states } = following({ status });
    await settle();
    timers.advance(100_000);
    await settle();
    expect(gateway.asked).toHaveLength(1);
    expect(states.at(-1)).toEqual({ state: 'refused', words: 'Only a server key may.' });
  });

  test('a gateway that is busy is asked again, and less and less often', async () => {
    const { timers, states } = following({ status: 503 });
    await settle();
    const waits: number[] = [];
    for (let i = 0; i < 4; i++) {
      const { state, ...rest } = states.at(-1)!;
      expect(state).toBe('waiting');
      waits.push((rest as { retryAt: number }).retryAt - timers.now());
      timers.advance(waits.at(-1)!);
      await settle();
    }
    expect(waits).toEqual([2000, 4000, 8000, 16_000]);
  });

  test('a stream that is silent for 45 s is taken for dead; one that says that it is there is not', async () => {
    const { gateway, timers } = following();
    await settle();
    timers.advance(44_000);
    gateway.say(': still here\n\n');
    await settle();
    timers.advance(44_000);
    await settle();
    expect(gateway.asked[0]!.signal.aborted).toBe(false);
    timers.advance(2000);
    await settle();
    expect(gateway.asked[0]!.signal.aborted).toBe(true);
    timers.advance(2000);
    await settle();
    expect(gateway.asked).toHaveLength(2);
  });

  test('who stops it hears nothing more, and no timer is left', async () => {
    const { gateway, timers, events, stream, states } = following();
    await settle();
    stream.stop();
    expect(gateway.asked[0]!.signal.aborted).toBe(true);
    await settle();
    timers.advance(100_000);
    await settle();
    expect(gateway.asked).toHaveLength(1);
    expect(events).toEqual([]);
    expect(states.at(-1)).toEqual({ state: 'off' });
  });

  test('much that waits is taken in pieces, and others get in between', async () => {
    const { gateway, timers, events } = following();
    await settle();
    // Every look at the clock finds 10 ms gone.
    let clock = 0;
    vi.mocked(performance.now).mockImplementation(() => (clock += 10));
    gateway.say('data: 1\n\n');
    gateway.say('data: 2\n\n');
    await settle();
    expect(events.map((e) => e.data)).toEqual(['1']);
    timers.advance(0);
    await settle();
    expect(events.map((e) => e.data)).toEqual(['1', '2']);
  });
});
