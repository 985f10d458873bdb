// For tests: a socket that a test speaks through, and a clock that it turns.
import type { Admission } from './admission';
import type { Socket, Timers } from './line';
import type { JoinedRoom, RoomAgent, RoomEvents } from './room';

export class FakeSocket implements Socket {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  readyState = 0;
  readonly sent: { type: string; payload: Record<string, unknown>; id?: string }[] = [];
  closedWith: number | undefined;
  /** In version 2: the number of the event said last. */
  seq = 0;

  constructor(
    readonly url: string,
    readonly protocols: string[] = [],
  ) {}

  get second(): boolean {
    return this.protocols[0] === 'vela.v2';
  }

  send(data: string | Uint8Array): void {
    if (this.readyState !== 1) throw new Error('send on a socket that is not open');
    this.sent.push(typeof data === 'string' ? JSON.parse(data) : { type: 'audio', payload: { bytes: [...data] } });
  }

  close(code?: number): void {
    this.closedWith = code;
    this.readyState = 3;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.(undefined as never);
  }

  /** In version 2 with the next number, as far as it is an event of the session. */
  say(type: string, payload: unknown = {}): void {
    const numbered = this.second && !['session.ready', 'error', 'history', 'signal', 'signal.missed'].includes(type);
    this.sayRaw(JSON.stringify({ type, payload, ...(numbered && { seq: ++this.seq, ts: 1_000_000 + this.seq }) }));
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

  /** As the gateway greets who begins. */
  greet(sessionId = 'session-1', change: Record<string, unknown> = {}): void {
    this.open();
    this.say('session.ready', this.second ? { ...terms(sessionId), ...change } : { sessionId });
    this.say('session.state', { value: 'idle' });
  }

  /** As it greets who comes back; what was missed is for the test to say. */
  welcome(after: number, lastSeq = after, recovered = true): void {
    this.open();
    this.seq = after;
    this.say('session.ready', { ...terms('session-1'), resumed: true, recovered, lastSeq });
  }

  get types(): string[] {
    return this.sent.map((e) => e.type);
  }

  /** What was sent after the greeting of version 2. */
  get asked(): string[] {
    return this.types.slice(1);
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

/** What is in force, as version 2 says it. */
export function terms(sessionId: string): Record<string, unknown> {
  return {
    sessionId,
    protocol: 2,
    resumed: false,
    recovered: false,
    resumeToken: `token of ${sessionId}`,
    resumeWindowMs: 120_000,
    lastSeq: 0,
    turns: 'agent',
    agent: 'echo',
    audio: { input: { encoding: 'pcm16', rate: 16000, framing: 'binary' } },
    turnDetection: 'none',
    interrupt: true,
    approvals: false,
    room: '',
    features: ['text', 'audio_in', 'resume', 'history'],
  };
}

/** sessionStorage, without a browser. */
export class FakeStore {
  readonly kept = new Map<string, string>();
  getItem = (key: string): string | null => this.kept.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.kept.set(key, value);
  removeItem = (key: string): void => void this.kept.delete(key);
}

/** A room that a test speaks through, in place of LiveKit's. */
export class FakeRoom implements JoinedRoom {
  agent: RoomAgent | null = null;
  /** What was done to it, in order. */
  readonly done: string[] = [];
  /** What the next calls of procedures come to. */
  refusal: unknown = null;
  answer = '{}';

  constructor(
    readonly admission: Admission,
    readonly events: RoomEvents,
  ) {}

  async chat(text: string): Promise<void> {
    this.done.push(`chat ${text}`);
  }
  async send(topic: string, packet: Uint8Array): Promise<void> {
    this.done.push(`${topic} ${new TextDecoder().decode(packet)}`);
  }
  async call(identity: string, method: string, payload: string): Promise<string> {
    this.done.push(`${identity}.${method} ${payload}`);
    if (this.refusal !== null) throw this.refusal;
    return this.answer;
  }
  async publish(microphone: MediaStreamTrack | null): Promise<void> {
    this.done.push(microphone ? 'publish' : 'unpublish');
  }
  mute(muted: boolean): void {
    this.done.push(muted ? 'mute' : 'unmute');
  }
  speak(on: boolean): void {
    this.done.push(on ? 'speak' : 'hush');
  }
  leave(): void {
    this.done.push('leave');
  }

  /** The agent comes, or does something else; null lets it go. */
  agentIs(state: string | null, identity = 'agent', detection = this.agent?.detection ?? null, follow: readonly string[] | null = null): void {
    this.agent = state === null ? null : { identity, state, detection, follow };
    this.events.onAgent(this.agent);
  }

  /** An object of ganglia-events, as one packet. */
  tell(object: object, topic = 'ganglia-events', from = 'agent'): void {
    this.events.onData(topic, from, new TextEncoder().encode(JSON.stringify(object)));
  }

  /** One update of what somebody says: a stream of its own. */
  userSays(text: string, final: boolean, from: { identity: string; name: string } = { identity: 'me', name: '' }, segment = 'u1'): void {
    const stream = `${segment}-${this.#streams++}`;
    this.events.onTranscription({ stream, segment, from, text, end: false, final });
    this.events.onTranscription({ stream, segment, from, text: '', end: true, final });
  }

  /** The next piece of an answer, or its end. */
  agentSays(text: string | null, segment = 'a1'): void {
    this.events.onTranscription({ stream: segment, segment, from: { identity: 'agent', name: '' }, text: text ?? '', end: text === null, final: true });
  }

  #streams = 0;
}
