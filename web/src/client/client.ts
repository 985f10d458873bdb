import { closeCodes, type ClientEventV2, type SessionReadyPayloadV2, type SessionStartPayloadV2 } from '@vela/protocol';
import type { ServerEventV2 } from '@vela/protocol';
import { fullJitter } from './backoff';
import { base64 } from './base64';
import type { Cause, ConnectionStatus } from './connection';
import { decode2, encode2 } from './decode2';
import { Line, offer, provenAfter, readyWithin, systemTimers, type OpenSocket, type Timers } from './line';
import { Marks } from './marks';
import { dropTicket, keepTicket, takeTicket, type Store, type Ticket } from './ticket';

/** How to reach a gateway in version 2, and who is told what happens. */
export interface ClientOptions {
  /** The address, asked for at each try. */
  url(): string;
  onStatus(status: ConnectionStatus): void;
  /** Each event of the session exactly once and in order; also what concerns this connection alone. */
  onEvent(event: ServerEventV2): void;
  /** After a resume, when all that was missed has been handed over. */
  onCaughtUp?(): void;
  /** What a new session is asked for. */
  settings?(): SessionStartPayloadV2;
  /** Who comes, as a JWT, for a gateway that wants to know; null for none. Asked for at each try. */
  token?(): string | null;
  /** Where keep() leaves the session for whoever comes next; a page gives its sessionStorage. */
  storage?: Store | null;
  socket?: OpenSocket;
  timers?: Timers;
  random?(): number;
}

/**
 * A session, whatever carries it: the socket of a Client, or a room. A transport that carries the microphone by itself is told by listen() when
 * it is to be heard, until the commit or the clear; sendAudio() then says only whether there is a session.
 */
export type Session = Pick<Client, 'status' | 'terms' | 'connect' | 'tryNow' | 'disconnect' | 'pause' | 'keep' | 'unkeep' | 'send' | 'sendAudio'> & {
  listen?(): void;
};

/** Closed with one of these, the session itself is over, or never began. */
const sessionIsOver = new Set([1000, 4004, 4005, 4006]);

/**
 * A session of version 2 of the protocol, across as many connections as it takes.
 *
 * Start at connect(). A connection that is lost is tried again, and the session resumed, for as long as the gateway keeps it: then nothing is
 * handed over twice and nothing is missing. Where that cannot be, a new session begins, and its session.ready says `resumed: false`. Nothing
 * here throws, whatever the gateway sends.
 */
export class Client {
  #o: ClientOptions;
  #timers: Timers;
  #status: ConnectionStatus = { state: 'not connected', cause: null, retryAt: null };
  #line: Line;
  #tries = 0;
  #byItself = false; // whether this try was made without being asked
  #insists = false; // whether somebody asked for this very session, and no other will do
  #ticket: Ticket | null = null;
  #marks = new Marks(); // where whoever comes without memory may begin
  #clearing = false; // whether a new conversation was asked for
  #looked = false; // whether the storage was asked for a ticket
  #keptUntil = Infinity;
  #resuming = false;
  #ready: SessionReadyPayloadV2 | null = null;
  #readyAt = 0;
  #catchUpTo: number | null = null;
  #startId = '';
  #ids = 0;

  constructor(options: ClientOptions) {
    this.#o = options;
    this.#timers = options.timers ?? systemTimers;
    this.#line = new Line(
      {
        onOpen: () => this.#greet(),
        onMessage: (data) => this.#receive(data),
        onError: () => this.#socketError(),
        onClose: (code, reason) => this.#closed(code, reason),
      },
      this.#timers,
      options.socket,
    );
  }

  get status(): ConnectionStatus {
    return this.#status;
  }

  /** What is in force, null while no session is there. */
  get terms(): SessionReadyPayloadV2 | null {
    return this.#ready;
  }

  /** Opens a connection, and takes up a session that is kept; leaves a connection that is there, or coming, alone. */
  connect(): void {
    if (this.#underWay()) return;
    this.#tries = 0;
    if (!this.#looked) {
      this.#looked = true;
      this.#ticket ??= takeTicket(this.#o.storage ?? null);
      if (this.#ticket) this.#keptUntil = this.#timers.now() + this.#ticket.windowMs;
    }
    const { cause } = this.#status;
    this.#insists = cause?.kind === 'closed' && cause.code === 4002;
    this.#try(false);
  }

  /** Does not wait for the next try. */
  tryNow(): void {
    if (this.#underWay()) return;
    this.#try(this.#status.retryAt !== null);
  }

  #underWay(): boolean {
    return this.#status.state === 'connecting' || this.#status.state === 'connected';
  }

  /** Ends the session for good, and stays closed until connect(). */
  disconnect(): void {
    if (this.#ready) this.send({ type: 'session.close', payload: {} });
    this.#giveUp();
    this.#drop();
    this.#set({ state: 'not connected', cause: null, retryAt: null });
  }

  /** Closes the connection and keeps the session, for connect() with another token. */
  pause(cause: Cause): void {
    this.#part();
    this.#drop();
    this.#set({ state: 'disconnected', cause, retryAt: null });
  }

  /**
   * Leaves the session in the storage. To be called when the page goes, and not before: a copy of the page made while it is open would
   * otherwise take the session with it.
   */
  keep(): void {
    const store = this.#o.storage ?? null;
    if (this.#ticket) keepTicket(store, { ...this.#ticket, after: this.#marks.first ?? this.#ticket.after });
    else dropTicket(store);
  }

  /** The page has come back from where keep() expected another one. */
  unkeep(): void {
    dropTicket(this.#o.storage ?? null);
  }

  /** Sends, and returns the id that an error about it would name; null when there was nobody to send to. */
  send(event: ClientEventV2): string | null {
    if (event.type === 'history.clear') this.#clearing = true;
    const id = this.#nextId();
    return this.#ready && this.#line.send(encode2(event, id)) ? id : null;
  }

  /** Sends audio in the framing agreed. Says whether there was somebody to send to. */
  sendAudio(pcm: Uint8Array<ArrayBuffer>): boolean {
    if (!this.#ready) return false;
    if (this.#ready.audio?.input?.framing === 'binary') return this.#line.send(pcm);
    return this.send({ type: 'input_audio.append', payload: { chunk: base64(pcm) } }) !== null;
  }

  #nextId(): string {
    return `c${++this.#ids}`;
  }

  #try(byItself: boolean): void {
    this.#drop();
    if (this.#timers.now() >= this.#keptUntil) this.#giveUp();
    this.#byItself = byItself;
    this.#resuming = this.#ticket !== null;
    this.#set({ state: 'connecting', cause: null, retryAt: null });
    try {
      this.#line.open(this.#o.url(), offer('vela.v2', this.#o.token?.() ?? null));
    } catch {
      this.#fail({ kind: 'socket' });
      return;
    }
    this.#line.wait(readyWithin, () => this.#lost({ kind: 'closed', code: 1006, reason: 'no session' }));
  }

  #greet(): void {
    this.#startId = this.#nextId();
    const ticket = this.#ticket;
    const first: ClientEventV2 = ticket
      ? { type: 'session.resume', payload: { token: ticket.token, after: ticket.after } }
      : { type: 'session.start', payload: this.#o.settings?.() ?? {} };
    this.#line.send(encode2(first, this.#startId));
    this.#set({ state: 'connected', cause: null, retryAt: null });
  }

  #receive(data: unknown): void {
    const decoded = decode2(data);
    if (decoded.kind === 'malformed') return this.#unreadable(decoded.why);
    const { seq } = decoded;
    if (seq !== null) {
      if (!this.#ticket || !this.#ready) return this.#unreadable('an event before session.ready');
      if (seq <= this.#ticket.after) return; // it was here already
      if (seq !== this.#ticket.after + 1) return this.#gap();
      this.#ticket.after = seq;
    }
    if (seq !== null) this.#marks.count(typeof data === 'string' ? data.length : 0);
    if (decoded.kind === 'event') this.#event(decoded.event, seq);
    this.#catchUp();
  }

  #event(event: ServerEventV2, seq: number | null): void {
    switch (event.type) {
      case 'session.ready':
        return this.#onReady(event);
      case 'session.state':
        if (seq !== null && event.payload.value === 'idle') this.#marks.add(seq);
        break;
      case 'history':
        // A new conversation: nothing of the one before is to come back.
        if (this.#clearing && this.#ticket) this.#marks.restart(this.#ticket.after);
        this.#clearing = false;
        break;
      case 'session.ended':
        // After a shutdown the session may be there again when the gateway is.
        if (event.payload.reason !== 'shutdown') this.#giveUp();
        break;
      case 'error':
        if (!this.#ready && this.#answersGreeting(event.payload)) return;
        break;
    }
    this.#o.onEvent(event);
  }

  /** An error before session.ready: what it means for this try. Says whether it needs no further word. */
  #answersGreeting({ code, message, ref }: { code: string; message: string; ref?: string }): boolean {
    if (code === 'session_gone') return true; // its close code follows
    if (code === 'session_limit' || (ref !== undefined && ref !== this.#startId)) return false;
    this.#fail({ kind: 'refused', code, message });
    return true;
  }

  #onReady(event: Extract<ServerEventV2, { type: 'session.ready' }>): void {
    const { payload } = event;
    if (this.#ready) {
      // Said again, in answer to a further session.start.
      this.#ready = payload;
      return this.#o.onEvent(event);
    }
    if (this.#resuming && !payload.recovered) return this.#startOver();
    const { resumeToken: token, resumeWindowMs: windowMs, lastSeq } = payload;
    if (this.#resuming && this.#ticket) {
      this.#ticket = { ...this.#ticket, token, windowMs };
      if (this.#marks.first === null) this.#marks.restart(this.#ticket.after);
      this.#catchUpTo = lastSeq;
    } else {
      this.#ticket = { token, windowMs, after: lastSeq };
      this.#marks.restart(lastSeq);
    }
    this.#ready = payload;
    this.#readyAt = this.#timers.now();
    this.#keptUntil = Infinity;
    this.#insists = false;
    this.#line.stopWaiting();
    this.#set({ state: 'connected', cause: null, retryAt: null });
    this.#o.onEvent(event);
  }

  #catchUp(): void {
    if (this.#catchUpTo === null || !this.#ticket || this.#ticket.after < this.#catchUpTo) return;
    this.#catchUpTo = null;
    this.#o.onCaughtUp?.();
  }

  /** Something is missing that will not come any more: what follows would be no whole. */
  #gap(): void {
    if (this.#proven()) return this.#startOver();
    // One that leaves gaps over and over is not asked again at once.
    this.#giveUp();
    this.#lost({ kind: 'malformed', why: 'events are missing' });
  }

  /** A new session in place of one that cannot be had whole. */
  #startOver(): void {
    this.#line.send(encode2({ type: 'session.close', payload: {} }, this.#nextId()));
    this.#giveUp();
    this.#try(true);
  }

  #unreadable(why: string): void {
    this.#giveUp(); // it would be sent again
    this.#fail({ kind: 'malformed', why });
  }

  /**
   * The browser's error event says nothing about the reason; the close event that follows has the code. A first try that somebody asked for
   * and that never opened ends here; all others go on trying.
   */
  #socketError(): void {
    if (this.#status.state === 'connected') {
      this.#set({ state: 'error', cause: { kind: 'socket' }, retryAt: null });
    } else if (this.#byItself || this.#ticket) {
      this.#lost({ kind: 'closed', code: 1006, reason: '' });
    } else {
      this.#fail({ kind: 'socket' });
    }
  }

  #closed(code: number, reason: string): void {
    const resuming = this.#resuming && !this.#ready;
    if (sessionIsOver.has(code)) this.#giveUp();
    if (code === 4006 && resuming && !this.#insists) return this.#try(true);
    // 1006 is never sent: the browser reports it when the connection just went away. It is in no table of the gateway.
    if (code === 1006 || closeCodes[code]?.reconnect) return this.#lost({ kind: 'closed', code, reason });
    this.#part();
    if (code === 4002) this.#keptUntil = Infinity; // the other connection keeps it
    this.#drop();
    this.#set({ state: 'disconnected', cause: { kind: 'closed', code, reason }, retryAt: null });
  }

  #lost(cause: Cause): void {
    if (this.#proven()) this.#tries = 0;
    this.#part();
    this.#drop();
    const wait = fullJitter(this.#tries++, this.#o.random ?? Math.random);
    this.#line.wait(wait, () => this.#try(true));
    this.#set({ state: 'disconnected', cause, retryAt: this.#timers.now() + wait });
  }

  #fail(cause: Cause): void {
    this.#part();
    this.#drop();
    this.#set({ state: 'error', cause, retryAt: null });
  }

  #proven(): boolean {
    return this.#ready !== null && this.#timers.now() - this.#readyAt >= provenAfter;
  }

  /** The clock of a session that was here runs from now on. */
  #part(): void {
    if (this.#ready && this.#ticket) this.#keptUntil = this.#timers.now() + this.#ticket.windowMs;
  }

  /** There is nothing to come back to. */
  #giveUp(): void {
    this.#ticket = null;
    this.#keptUntil = Infinity;
  }

  #drop(): void {
    this.#line.drop();
    this.#ready = null;
    this.#catchUpTo = null;
  }

  #set(status: ConnectionStatus): void {
    this.#status = this.#ticket && !this.#ready ? { ...status, keptUntil: this.#keptUntil } : status;
    this.#o.onStatus(this.#status);
  }
}
