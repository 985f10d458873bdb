import type { ClientEventV2, ErrorCode, ServerEventV2, SessionReadyPayloadV2, SessionStartPayloadV2 } from '@vela/protocol';
import type { Admission, Place, Refusal } from './admission';
import { fullJitter } from './backoff';
import type { ClientOptions, Session } from './client';
import { isObject } from './decode';
import { saidOnly, type Cause, type ConnectionStatus } from './connection';
import { decode2 } from './decode2';
import { Joiner, readGanglia, type GangliaCommand, type GangliaEvent } from './ganglia';
import { provenAfter, systemTimers, type Timers } from './line';

/** The agent of a room: a participant of that kind. */
export interface RoomAgent {
  identity: string;
  /** Its attribute lk.agent.state. */
  state: string;
  /** Its attribute vela.turn_detection: vad, where the session hears who speaks, none, or null, where it cannot. */
  detection: string | null;
  /** Its attribute vela.follow: the ids of the sources whose work is shown here, too; null where none can be. */
  follow: readonly string[] | null;
}

/** A source that a room can follow. */
export interface RoomSource {
  id: string;
  name: string;
  /** Whether the gateway listens to it now. */
  here: boolean;
}

/** Reads the attribute vela.follow. */
export function readFollow(text: string | undefined): readonly string[] | null {
  const value = parsed(text ?? '');
  return Array.isArray(value) && value.every((id) => typeof id === 'string') ? value : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Reads what sources.get returns. */
function readRoomSources(text: string): readonly RoomSource[] {
  const value = parsed(text);
  if (!isObject(value) || !Array.isArray(value.sources)) return [];
  return value.sources.flatMap((s: unknown) => {
    if (!isObject(s) || typeof s.id !== 'string' || s.id === '') return [];
    return { id: s.id, name: typeof s.name === 'string' && s.name !== '' ? s.name : s.id, here: s.here === true };
  });
}

/** A piece of a text stream on lk.transcription, or its end. */
export interface Transcription {
  /** The stream's own id. */
  stream: string;
  /** lk.segment_id; the stream's id where it has none. */
  segment: string;
  /** Whose words they are. */
  from: { identity: string; name: string };
  text: string;
  end: boolean;
  /** lk.transcription_final. */
  final: boolean;
}

/** Why a room is not there any more, or never was. */
export type Left = 'lost' | 'refused' | 'unreachable' | 'elsewhere' | 'removed' | 'closed';

/** What happens in a room that was joined. */
export interface RoomEvents {
  /** Who answers here now; null when nobody does any more. */
  onAgent(agent: RoomAgent | null): void;
  onTranscription(piece: Transcription): void;
  /** A data packet. */
  onData(topic: string, from: string, packet: Uint8Array): void;
  onReconnecting(): void;
  onReconnected(): void;
  onLeft(why: Left): void;
}

/** A room that was joined. Its promises fail when it cannot be done; what follows from that is told by RoomEvents. */
export interface JoinedRoom {
  readonly agent: RoomAgent | null;
  /** A text stream on lk.chat. */
  chat(text: string): Promise<void>;
  /** A data packet, reliable. */
  send(topic: string, packet: Uint8Array<ArrayBuffer>): Promise<void>;
  /** A remote procedure of a participant's, and what it returns. */
  call(identity: string, method: string, payload: string): Promise<string>;
  /** Carries the microphone, muted at first; null takes it back. */
  publish(microphone: MediaStreamTrack | null): Promise<void>;
  mute(muted: boolean): void;
  /** Whether the agent is to be heard. */
  speak(on: boolean): void;
  leave(): void;
}

/** Joins a room. It throws a RoomError, and calls no event before it has returned. */
export type JoinRoom = (admission: Admission, events: RoomEvents) => Promise<JoinedRoom>;

/** A room could not be joined; its reason is `why`, and its words are for a log. */
export class RoomError extends Error {
  constructor(readonly why: Left) {
    super(`room: ${why}`);
  }
}

/** What was said so far, by whom. */
export interface Words {
  role: 'user' | 'agent';
  segment: string;
  text: string;
  final: boolean;
}

/** A session in a room has no address and no socket: it has a place, and an admission to it. */
export interface RoomClientOptions extends Omit<ClientOptions, 'url' | 'socket' | 'storage'> {
  place(): Place;
  admit(place: Place, token: string | null): Promise<Admission | Refusal>;
  join: JoinRoom;
  /** Asks for an agent where none has come. */
  summon(room: string, token: string | null): Promise<void>;
  /** Each update of what is said, by whoever says it. */
  onWords?(words: Words): void;
  /** What the agent does, as it says by lk.agent.state; null while none is there. */
  onAgent?(state: string | null): void;
  /** Whose work is shown here beside the agent's, as everybody in the room has it; null where that cannot be chosen. */
  onFollow?(sources: readonly string[] | null): void;
}

/** How long an agent has to come by itself, and how long after it was asked for, in ms. */
const comesWithin = 2000;
const summonedWithin = 10_000;

/** The state of an agent is told on another way than what it says, and may be here first: it counts when nothing else has come for so long, in ms. */
const settlesIn = 300;

/** A text that was begun and gets no end is not waited for longer than this, in ms. */
const endsWithin = 2000;

/** What of the protocol's events an agent says as they are, on vela-events. What else is said has its own place in a room. */
const asTheyAre = new Set<string>(['approval.request', 'tool.call', 'tool.result', 'thinking.delta', 'turn.metrics']);

/** The codes of the protocol's errors. Their table with its words is not for a page that has words of its own. */
const codes: Record<ErrorCode, true> = {
  invalid_json: true, invalid_message: true, mocked_turn_in_flight: true, turn_in_flight: true, audio_too_long: true, rate_limited: true,
  agent_unavailable: true, agent_failed: true, agent_timeout: true, speech_unavailable: true, speech_failed: true, session_limit: true,
  internal: true, turn_interrupted: true, unsupported: true, session_gone: true,
};

/** What of version 2 an agent in a room gives that a client has to know of. */
const featuresOf = (detection: string | null | undefined): string[] => (detection ? ['vad'] : []);

const notNow = 'The agent did not answer. Try again in a moment.';

/** What a call was refused with, as JoinedRoom.call throws it. */
function readRefusal(error: unknown): { data: unknown; message: string } {
  const { data, message } = (isObject(error) ? error : {}) as { data?: unknown; message?: unknown };
  return { data, message: typeof message === 'string' ? message : '' };
}

const isCode = (text: unknown): text is ErrorCode => typeof text === 'string' && Object.hasOwn(codes, text);

/**
 * A session of version 2 in a LiveKit room: what an agent says there, as the events of the protocol, and what is sent to it, as a room takes it.
 *
 * Start at connect(). It knows LiveKit by JoinRoom alone. A room that was lost is joined again, and the conversation goes on; an agent that
 * left comes back into it. Nothing here throws, whatever comes.
 */
export class RoomClient implements Session {
  #o: RoomClientOptions;
  #timers: Timers;
  #status: ConnectionStatus = { state: 'not connected', cause: null, retryAt: null };
  #attempt = 0; // whoever belongs to another one is not heard
  #tries = 0;
  #joinedAt = 0;
  #timer: unknown = null; // for the next try, or for the agent
  #room: JoinedRoom | null = null;
  #agent: RoomAgent | null = null;
  #ready: SessionReadyPayloadV2 | null = null;
  #met = ''; // the room in which there was an agent
  #holding = false; // whether the agent said that it leaves for want of a word
  #microphone: MediaStreamTrack | null = null;
  #open = false; // whether the microphone is to be heard
  #listening = false; // whether somebody speaks, whom the session hears by itself
  #speaks = true;
  #joiner = new Joiner();
  #streams = new Map<string, string>(); // of users: what has come so far
  #answer: { segment: string; text: string; cut: 'barge_in' | 'client' | null } | null = null;
  #state = '';
  #settling: unknown = null;
  #ids = 0;

  constructor(options: RoomClientOptions) {
    this.#o = options;
    this.#timers = options.timers ?? systemTimers;
  }

  get status(): ConnectionStatus {
    return this.#status;
  }

  get terms(): SessionReadyPayloadV2 | null {
    return this.#ready;
  }

  /** Joins the room; in it, asks for the agent that is not there. */
  connect(): void {
    if (this.#room && !this.#agent) return this.#summon();
    if (this.#status.state === 'connecting' || this.#status.state === 'connected') return;
    this.#tries = 0;
    void this.#join();
  }

  tryNow(): void {
    if (this.#status.retryAt !== null) void this.#join();
  }

  disconnect(): void {
    if (this.#agent) this.#command({ type: 'end_voice_session' });
    this.#met = '';
    this.#leave();
    this.#set({ state: 'not connected', cause: null, retryAt: null });
  }

  pause(cause: Cause): void {
    this.#leave();
    this.#set({ state: 'disconnected', cause, retryAt: null });
  }

  // A room is left with its page, and the conversation is the room's.
  keep(): void {}
  unkeep(): void {}

  /** What there is to follow, for whoever is here. Without an agent to say it, nothing. */
  async sources(): Promise<readonly RoomSource[]> {
    if (!this.#room || !this.#agent) return [];
    return readRoomSources(await this.#room.call(this.#agent.identity, 'sources.get', '{}').catch(() => ''));
  }

  /** Has the work of these sources shown here, for everybody. It returns what the gateway says against it; '' where it is so. */
  async follow(sources: readonly string[]): Promise<string> {
    if (!this.#room || !this.#agent) return notNow;
    try {
      await this.#room.call(this.#agent.identity, 'session.start', JSON.stringify({ follow: sources }));
      return '';
    } catch (error) {
      const { data, message } = readRefusal(error);
      return isCode(data) && message !== '' ? message : notNow;
    }
  }

  /** Carries the microphone from now on, muted; null takes it back. */
  async publish(microphone: MediaStreamTrack | null): Promise<void> {
    this.#microphone = microphone;
    this.#open = false;
    await this.#room?.publish(microphone);
    if (this.#staysOpen) this.#hear(true);
  }

  /** Whether answers are to be heard. */
  speak(on: boolean): void {
    this.#speaks = on;
    this.#room?.speak(on);
    if (this.#agent) this.#command({ type: 'tts-mode', value: on ? 'on' : 'off' });
  }

  listen(): void {
    this.#cutAnswer('barge_in');
    this.#hear(true);
  }

  sendAudio(): boolean {
    return this.#ready !== null;
  }

  send(event: ClientEventV2): string | null {
    if (!this.#room || !this.#agent) return null;
    const id = `r${++this.#ids}`;
    switch (event.type) {
      case 'input_audio.commit':
        if (!this.#staysOpen) this.#hear(false);
        break;
      case 'input_audio.clear':
        // Nothing behind it is to be heard, and what was is to be forgotten.
        if (!this.#staysOpen) this.#hear(false);
        this.#call(event, id);
        break;
      case 'input_text.submit':
        this.#cutAnswer('barge_in');
        void this.#room.chat(event.payload.text).catch(() => this.#failed('internal', '', id));
        break;
      case 'response.cancel':
        this.#cutAnswer('client');
        this.#call({ type: 'response.cancel', payload: {} }, id);
        break;
      case 'session.start': {
        // What is heard goes on tracks, whatever was asked for: that needs no agent's word.
        const { agent, turnDetection } = event.payload;
        if (agent !== undefined || turnDetection !== undefined) {
          this.#start({ ...(agent !== undefined && { agent }), ...(turnDetection !== undefined && { turnDetection }) }, id);
        } else {
          void Promise.resolve().then(() => this.#ready && this.#o.onEvent({ type: 'session.ready', payload: this.#ready }));
        }
        break;
      }
      case 'approval.answer':
      case 'history.get':
      case 'history.clear':
        this.#call(event, id);
    }
    return id;
  }

  #call(event: ClientEventV2, id: string): void {
    const then = (answer: string): void => {
      if (event.type === 'history.clear') this.#o.onEvent({ type: 'history', payload: { items: [] } });
      if (event.type === 'history.get') this.#told(answer);
    };
    void this.#room!.call(this.#agent!.identity, event.type, JSON.stringify(event.payload)).then(then, (error: unknown) => this.#refused(error, id));
  }

  /** The conversation as the agent knows it, in the words of the protocol. */
  #told(answer: string): void {
    const decoded = decode2(`{"type":"history","payload":${answer}}`);
    if (decoded.kind === 'event') this.#o.onEvent(decoded.event);
  }

  /** Tells the agent how this client wants it. That it took another name, or listens by itself, is said as it is on a socket. */
  #start(settings: SessionStartPayloadV2, id: string): void {
    const { agent, turnDetection } = settings;
    void this.#room!.call(this.#agent!.identity, 'session.start', JSON.stringify(settings)).then(
      () => {
        if (!this.#ready || (agent === undefined && turnDetection === undefined)) return;
        this.#ready = { ...this.#ready, ...(agent !== undefined && { agent }), ...(turnDetection !== undefined && { turnDetection }) };
        if (turnDetection !== undefined) this.#hear(this.#staysOpen);
        this.#o.onEvent({ type: 'session.ready', payload: this.#ready });
      },
      (error: unknown) => this.#refused(error, id),
    );
  }

  /** Whether the microphone is open between turns: then the gateway finds where they end. */
  get #staysOpen(): boolean {
    return this.#ready !== null && this.#ready.turnDetection !== 'none';
  }

  /** What the agent answers instead of doing it: a code of the protocol's, where it has one. */
  #refused(error: unknown, id: string): void {
    const { data, message } = readRefusal(error);
    if (isCode(data)) this.#failed(data, message, id);
    else this.#failed('internal', '', id);
  }

  /** ref is the message that it was about. */
  #failed(code: ErrorCode, message: string, ref?: string): void {
    this.#o.onEvent({ type: 'error', payload: { code, message, ...(ref !== undefined && { ref }) } });
  }

  #command(command: GangliaCommand): void {
    // One that is lost is lost with the room, and said again there.
    void this.#room?.send('ganglia-events', new TextEncoder().encode(JSON.stringify(command))).catch(() => {});
  }

  async #join(): Promise<void> {
    this.#leave();
    const attempt = this.#attempt;
    const place = this.#o.place();
    this.#set({ state: 'connecting', cause: null, retryAt: null });
    const token = this.#o.token?.() ?? null;
    const admission = await this.#o.admit(place, token);
    if (attempt !== this.#attempt) return;
    if ('kind' in admission) return this.#notAdmitted(admission);
    let room: JoinedRoom;
    try {
      room = await this.#o.join(admission, this.#events(attempt));
    } catch (error) {
      if (attempt === this.#attempt) this.#left(error instanceof RoomError ? error.why : 'unreachable');
      return;
    }
    if (attempt !== this.#attempt) return room.leave();
    this.#room = room;
    this.#joinedAt = this.#timers.now();
    room.speak(this.#speaks);
    // A microphone that cannot be carried is not heard, which the next press of the control tries again.
    if (this.#microphone) void this.publish(this.#microphone).catch(() => {});
    this.#meet(room.agent);
    if (!this.#agent) this.#wait(comesWithin, () => this.#summon());
  }

  /** The events of one attempt; those of an earlier one are for nobody. */
  #events(attempt: number): RoomEvents {
    const heard =
      <A extends unknown[]>(run: (...args: A) => void) =>
      (...args: A): void => {
        if (attempt === this.#attempt && this.#room) run(...args);
      };
    return {
      onAgent: heard((agent) => this.#meet(agent)),
      onTranscription: heard((piece) => this.#transcription(piece)),
      onData: heard((topic, from, packet) => this.#data(topic, from, packet)),
      onReconnecting: heard(() => this.#set({ state: 'connecting', cause: null, retryAt: null })),
      onReconnected: heard(() => this.#reconnected()),
      onLeft: heard((why) => this.#left(why)),
    };
  }

  #notAdmitted(refusal: Refusal): void {
    const again = 'Try again';
    switch (refusal.kind) {
      case 'sign in':
        return this.#set({ state: 'disconnected', cause: { kind: 'closed', code: 4001, reason: '' }, retryAt: null });
      case 'none':
        return this.#stop({ kind: 'said', strong: 'This gateway has no LiveKit server.', text: 'Whoever runs it names one when it is started.', again });
      case 'refused':
        return this.#stop({ kind: 'said', strong: 'The gateway did not let you into this room.', text: refusal.words, again });
      case 'gone':
        if (this.#met !== '') return this.#retry();
        return this.#stop({ kind: 'said', strong: 'The gateway cannot be reached.', text: '', again });
    }
  }

  #left(why: Left): void {
    const again = 'Join again';
    if (this.#holding) return this.#paused();
    switch (why) {
      case 'lost':
        return this.#retry();
      case 'unreachable':
        if (this.#met !== '') return this.#retry();
        return this.#stop({ kind: 'said', strong: 'The LiveKit server cannot be reached.', text: '', again });
      case 'refused':
        return this.#stop({ kind: 'said', strong: 'The LiveKit server did not take the token.', text: 'Its clock or its keys are not those of the gateway.', again });
      case 'elsewhere':
        return this.#stop({ kind: 'said', strong: 'This went on in another window.', text: '', again: 'Take it back' });
      case 'removed':
        return this.#stop({ kind: 'said', strong: 'You were taken out of the room.', text: '', again });
      case 'closed':
        return this.#stop({ kind: 'said', strong: 'The room was closed.', text: '', again });
    }
  }

  /** Somebody has to do something. */
  #stop(cause: Cause): void {
    this.#leave();
    this.#set({ state: 'error', cause, retryAt: null });
  }

  #paused(): void {
    this.#leave();
    this.#set({ state: 'disconnected', cause: { kind: 'said', strong: 'Live mode paused', text: '— tap to resume', again: 'Resume' }, retryAt: null });
  }

  /** It is tried again by itself. */
  #retry(): void {
    if (this.#joinedAt > 0 && this.#timers.now() - this.#joinedAt >= provenAfter) this.#tries = 0;
    this.#leave();
    const wait = fullJitter(this.#tries++, this.#o.random ?? Math.random);
    this.#wait(wait, () => void this.#join());
    this.#set({ state: 'disconnected', cause: { kind: 'closed', code: 1006, reason: '' }, retryAt: this.#timers.now() + wait });
  }

  /** Ends this attempt, whatever it came to. */
  #leave(): void {
    this.#attempt++;
    this.#stopWaiting();
    this.#forgetSaid();
    this.#room?.leave();
    this.#room = null;
    if (this.#agent) {
      this.#o.onAgent?.(null);
      this.#o.onFollow?.(null);
    }
    this.#agent = null;
    this.#ready = null;
    this.#holding = false;
    this.#joinedAt = 0;
  }

  #forgetSaid(): void {
    this.#timers.clear(this.#settling);
    this.#settling = null;
    this.#joiner = new Joiner();
    this.#streams.clear();
    this.#answer = null;
    this.#state = '';
    this.#listening = false;
  }

  #reconnected(): void {
    this.#joiner = new Joiner();
    const agent = this.#room!.agent;
    this.#agent = null;
    this.#meet(agent);
    if (!agent) this.#absent();
  }

  #meet(agent: RoomAgent | null): void {
    const before = this.#agent;
    this.#agent = agent;
    this.#o.onAgent?.(agent?.state ?? null);
    this.#o.onFollow?.(agent?.follow ?? null);
    if (!agent) {
      if (before) this.#agentLeft();
      else this.#set({ state: 'connecting', cause: null, retryAt: null });
      return;
    }
    if (before?.identity !== agent.identity) this.#agentCame();
    else if (before.detection !== agent.detection) this.#detects(agent.detection);
    this.#turned(agent.state);
  }

  /** Somebody has had changed how turns end, or it can be chosen now. Where nothing ends them any more, an open microphone would never be answered. */
  #detects(detection: string | null): void {
    if (!this.#ready) return;
    const turnDetection = detection === 'vad' ? this.#ready.turnDetection : 'none';
    if (this.#staysOpen && turnDetection === 'none') this.#hear(false);
    this.#ready = { ...this.#ready, turnDetection, features: featuresOf(detection) };
    this.#o.onEvent({ type: 'session.ready', payload: this.#ready });
  }

  #agentCame(): void {
    const { room } = this.#o.place();
    const recovered = this.#met === room;
    this.#met = room;
    this.#stopWaiting();
    this.#forgetSaid();
    const { interrupt = true, approvals = true, agent, turnDetection } = this.#o.settings?.() ?? {};
    this.#ready = {
      sessionId: room, protocol: 2, resumed: recovered, recovered, resumeToken: '', resumeWindowMs: 0, lastSeq: 0,
      turns: 'agent', agent: agent ?? '', audio: {}, turnDetection: 'none', interrupt, approvals, room, features: featuresOf(this.#agent?.detection),
    };
    this.#set({ state: 'connected', cause: null, retryAt: null, word: 'In the room' });
    this.#o.onEvent({ type: 'session.ready', payload: this.#ready });
    this.#start({ interrupt, approvals, ...(agent !== undefined && { agent }), ...(turnDetection !== undefined && { turnDetection }) }, `r${++this.#ids}`);
    this.#command({ type: 'tts-mode', value: this.#speaks ? 'on' : 'off' });
    if (recovered) this.#o.onCaughtUp?.();
  }

  #agentLeft(): void {
    if (this.#holding) return this.#paused();
    this.#forgetSaid();
    this.#ready = null;
    this.#absent();
    // Another gateway may take its place; if none does, one is asked for.
    this.#wait(comesWithin, () => this.#summon());
  }

  #absent(): void {
    this.#set({ state: 'connecting', cause: { kind: 'said', strong: 'The agent has left the room.', text: 'Another one is asked for.', again: '' }, retryAt: null });
  }

  #summon(): void {
    void this.#o.summon(this.#o.place().room, this.#o.token?.() ?? null);
    this.#set({ state: 'connecting', cause: null, retryAt: null });
    this.#wait(summonedWithin, () =>
      this.#set({ state: 'connecting', cause: { kind: 'said', strong: 'No agent comes into this room.', text: 'The gateway may be stopping, or full.', again: 'Ask again' }, retryAt: null }),
    );
  }

  #data(topic: string, from: string, packet: Uint8Array): void {
    // Nobody else in the room speaks for the agent.
    if (from !== this.#agent?.identity) return;
    if (topic === 'vela-events') {
      const decoded = decode2(new TextDecoder().decode(packet));
      if (decoded.kind === 'event' && asTheyAre.has(decoded.event.type)) this.#o.onEvent(decoded.event);
      return;
    }
    if (topic !== 'ganglia-events') return;
    const joined = this.#joiner.join(packet, this.#timers.now());
    const event = joined.kind === 'object' ? readGanglia(joined.object) : null;
    if (event) this.#ganglia(event);
  }

  #ganglia(event: GangliaEvent): void {
    switch (event.type) {
      case 'status':
        return this.#o.onEvent({ type: 'status', payload: event } as ServerEventV2);
      case 'artifact':
        return this.#o.onEvent({ type: 'artifact', payload: event } as ServerEventV2);
      case 'session_hold':
        this.#holding = true;
        return;
      case 'system_event': {
        if (event.severity !== 'error') return;
        // The title of an error of the session's is its code in words.
        const code = event.title.toLowerCase().replaceAll(' ', '_');
        if (isCode(code)) return this.#failed(code, event.message);
        return this.#failed(saidOnly as ErrorCode, `${event.title}: ${event.message}`);
      }
      default: // what is said comes as text streams
    }
  }

  #transcription(piece: Transcription): void {
    if (piece.from.identity === this.#agent?.identity) this.#agentSays(piece);
    else this.#userSays(piece);
  }

  /** Each stream of a user's is the whole of what was said so far. */
  #userSays({ stream, segment, from, text, end, final }: Transcription): void {
    const whole = (this.#streams.get(stream) ?? '') + text;
    if (end) this.#streams.delete(stream);
    else this.#streams.set(stream, whole);
    // What is not whole yet would only flicker.
    if (!end) return;
    const spoke = this.#staysOpen && whole !== '' && !final;
    if (spoke && !this.#listening) {
      this.#listening = true;
      this.#cutAnswer('barge_in');
      this.#o.onEvent({ type: 'session.state', payload: { value: 'listening' } });
    }
    const said = from.identity === this.#o.place().identity || whole === '' ? whole : `${from.name || from.identity}: ${whole}`;
    this.#o.onWords?.({ role: 'user', segment, text: said, final });
    this.#o.onEvent({ type: final ? 'transcript.final' : 'transcript.partial', payload: { text: said } });
    if (final && this.#listening) {
      this.#listening = false;
      if (this.#state === 'idle') this.#settle(); // unless the agent thinks about it
    }
  }

  /** A stream of the agent's is one answer, piece by piece. */
  #agentSays({ segment, text, end }: Transcription): void {
    if (this.#answer && this.#answer.segment !== segment) this.#endAnswer();
    if (!this.#answer) {
      if (end && text === '') return;
      this.#answer = { segment, text: '', cut: null };
      this.#o.onEvent({ type: 'response.created', payload: { responseId: segment, turnId: segment } });
    }
    if (text !== '') {
      this.#answer.text += text;
      this.#o.onEvent({ type: 'response.text.delta', payload: { text, responseId: segment } });
      this.#o.onWords?.({ role: 'agent', segment, text: this.#answer.text, final: false });
    }
    if (end) this.#endAnswer();
    if (this.#state === 'idle') this.#settle();
  }

  #endAnswer(): void {
    const answer = this.#answer;
    if (!answer) return;
    this.#answer = null;
    const { segment: responseId, text, cut } = answer;
    this.#o.onWords?.({ role: 'agent', segment: responseId, text, final: true });
    if (cut) this.#o.onEvent({ type: 'response.cancelled', payload: { responseId, reason: cut, heardText: text, playedMs: 0 } } as ServerEventV2);
    else this.#o.onEvent({ type: 'response.completed', payload: { responseId } });
  }

  #cutAnswer(why: 'barge_in' | 'client'): void {
    if (this.#answer) this.#answer.cut = why;
  }

  /** What the agent does now. LiveKit's agents listen when they are idle. */
  #turned(state: string): void {
    const value = ({ listening: 'idle', idle: 'idle', thinking: 'thinking', speaking: 'speaking' } as const)[state];
    if (!value || value === this.#state) return;
    this.#state = value;
    if (value === 'idle') return this.#settle();
    this.#timers.clear(this.#settling);
    this.#settling = null;
    this.#o.onEvent({ type: 'session.state', payload: { value } });
  }

  /** Idle is told behind what the agent says. */
  #settle(): void {
    this.#timers.clear(this.#settling);
    this.#settling = this.#timers.set(
      () => {
        this.#settling = null;
        this.#endAnswer();
        if (!this.#listening) this.#o.onEvent({ type: 'session.state', payload: { value: 'idle' } });
      },
      this.#answer ? endsWithin : settlesIn,
    );
  }

  #hear(on: boolean): void {
    if (on === this.#open) return;
    this.#open = on;
    this.#room?.mute(!on);
  }

  #wait(ms: number, run: () => void): void {
    this.#stopWaiting();
    this.#timer = this.#timers.set(run, ms);
  }

  #stopWaiting(): void {
    this.#timers.clear(this.#timer);
    this.#timer = null;
  }

  /** In a conversation that has begun, what is not there is to come back. */
  #set(status: ConnectionStatus): void {
    const kept = this.#met !== '' && this.#met === this.#o.place().room && status.state !== 'connected';
    this.#status = kept ? { ...status, keptUntil: Infinity } : status;
    this.#o.onStatus(this.#status);
  }
}
