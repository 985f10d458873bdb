// For tests: a socket that a test speaks through, and a clock that it turns.
import type { Socket, Timers } from './connection';

export class FakeSocket implements Socket {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  readyState = 0;
  readonly sent: { type: string; payload: Record<string, unknown> }[] = [];
  closedWith: number | undefined;

  constructor(readonly url: string) {}

  send(data: string): void {
    if (this.readyState !== 1) throw new Error('send on a socket that is not open');
    this.sent.push(JSON.parse(data));
  }

  close(code?: number): void {
    this.closedWith = code;
    this.readyState = 3;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.(undefined as never);
  }

  say(type: string, payload: unknown = {}): void {
    this.sayRaw(JSON.stringify({ type, payload }));
  }

  sayRaw(data: unknown): void {
    this.onmessage?.({ data });
  }

  fail(): void {
    this.onerror?.(undefined as never);
  }

  end(code: number, reason = ''): void {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  /** As the gateway greets. */
  greet(sessionId = 'session-1'): void {
    this.open();
    this.say('session.ready', { sessionId });
    this.say('session.state', { value: 'idle' });
  }

  get types(): string[] {
    return this.sent.map((e) => e.type);
  }
}

export class FakeTimers implements Timers {
  #now = 1_000_000;
  #next = 1;
  #waiting = new Map<number, { at: number; run: () => void }>();

  now(): number {
    return this.#now;
  }

  set(run: () => void, ms: number): number {
    this.#waiting.set(this.#next, { at: this.#now + ms, run });
    return this.#next++;
  }

  clear(id: unknown): void {
    this.#waiting.delete(id as number);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#waiting].filter(([, t]) => t.at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.#waiting.delete(due[0]);
      this.#now = due[1].at;
      due[1].run();
    }
    this.#now = end;
  }
}
