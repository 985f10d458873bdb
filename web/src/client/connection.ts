import { closeCodes, type ClientEvent, type ServerEvent } from '@vela/protocol';
import { backoff } from './backoff';
import { decode, encode } from './decode';
import { Line, offer, provenAfter, readyWithin, systemTimers, type OpenSocket, type Timers } from './line';

/** The transport's own state, apart from the phase of the session. */
export type ConnectionState = 'not connected' | 'connecting' | 'connected' | 'disconnected' | 'error';

/** Why the connection is not there (any more). */
export type Cause =
  | { kind: 'closed'; code: number; reason: string }
  | { kind: 'malformed'; why: string }
  /** The gateway takes no session with these settings. */
  | { kind: 'refused'; code: string; message: string }
  | { kind: 'socket' }
  /** In the transport's own words, and what its button says; '' for none. */
  | { kind: 'said'; strong: string; text: string; again: string };

/** The code of an error that has no code, and whose words are all there is. */
export const saidOnly = 'said';

/** How the connection is, and why. */
export interface ConnectionStatus {
  state: ConnectionState;
  cause: Cause | null;
  /** When the next try begins, in ms of the clock; null when none is planned. */
  retryAt: number | null;
  /** Until when the session can be resumed, in ms of the clock, while it waits for that; Infinity when nobody knows. Never in version 1. */
  keptUntil?: number;
  /** What it is called while it is connected, where that is another word. */
  word?: string;
}

/** How to reach a gateway in version 1, and who is told what happens. */
export interface ConnectionOptions {
  /** The address, asked for at each try. */
  url(): string;
  onStatus(status: ConnectionStatus): void;
  onEvent(event: ServerEvent): void;
  /** For a gateway that wants to know who comes. Nothing is offered without it. */
  token?(): string | null;
  socket?: OpenSocket;
  timers?: Timers;
  random?(): number;
}

/**
 * One connection of version 1 to a gateway at a time, through its whole life: connect, lose, come back.
 *
 * Start at connect(). Nothing here throws, whatever the gateway sends: what cannot be read ends in the state 'error'. A session ends with its
 * connection in version 1 of the protocol, so coming back means a new one.
 */
export class Connection {
  #options: ConnectionOptions;
  #timers: Timers;
  #status: ConnectionStatus = { state: 'not connected', cause: null, retryAt: null };
  #line: Line;
  #tries = 0;
  #byItself = false; // whether this try was made without being asked
  #readyAt: number | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
    this.#line = new Line(
      {
        onOpen: () => this.#set({ state: 'connected', cause: null, retryAt: null }),
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

  /** Opens a connection; leaves one that is there, or coming, alone. */
  connect(): void {
    if (this.#underWay()) return;
    this.#tries = 0;
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

  /** Closes, and stays closed until connect(). The session ends. */
  disconnect(): void {
    this.#drop();
    this.#set({ state: 'not connected', cause: null, retryAt: null });
  }

  /** Sends, or says that there was nobody to send to. */
  send(event: ClientEvent): boolean {
    return this.#line.send(encode(event));
  }

  #try(byItself: boolean): void {
    this.#drop();
    this.#byItself = byItself;
    this.#set({ state: 'connecting', cause: null, retryAt: null });
    try {
      const token = this.#options.token?.() ?? null;
      this.#line.open(this.#options.url(), token === null ? [] : offer('vela.v1', token));
    } catch {
      this.#fail({ kind: 'socket' });
      return;
    }
    this.#line.wait(readyWithin, () => this.#lost({ kind: 'closed', code: 1006, reason: 'no session' }));
  }

  #receive(data: unknown): void {
    const decoded = decode(data);
    switch (decoded.kind) {
      case 'malformed':
        this.#fail({ kind: 'malformed', why: decoded.why });
        return;
      case 'unknown':
        return;
      case 'event':
        if (decoded.event.type === 'session.ready' && this.#readyAt === null) {
          this.#readyAt = this.#timers.now();
          this.#line.stopWaiting();
        }
        this.#options.onEvent(decoded.event);
    }
  }

  /**
   * The browser's error event says nothing about the reason; the close event that follows has the code. A try that somebody asked for and
   * that never opened ends here; one made by itself goes on trying; one that was open shows the error until its close says whether to come back.
   */
  #socketError(): void {
    if (this.#status.state === 'connected') {
      this.#set({ state: 'error', cause: { kind: 'socket' }, retryAt: null });
    } else if (this.#byItself) {
      this.#lost({ kind: 'closed', code: 1006, reason: '' });
    } else {
      this.#fail({ kind: 'socket' });
    }
  }

  #closed(code: number, reason: string): void {
    // 1006 is never sent: the browser reports it when the connection just went away. It is in no table of the gateway.
    if (code === 1006 || closeCodes[code]?.reconnect) {
      this.#lost({ kind: 'closed', code, reason });
      return;
    }
    this.#drop();
    this.#set({ state: 'disconnected', cause: { kind: 'closed', code, reason }, retryAt: null });
  }

  #lost(cause: Cause): void {
    if (this.#readyAt !== null && this.#timers.now() - this.#readyAt >= provenAfter) this.#tries = 0;
    this.#drop();
    const wait = backoff(this.#tries++, this.#options.random ?? Math.random);
    this.#line.wait(wait, () => this.#try(true));
    this.#set({ state: 'disconnected', cause, retryAt: this.#timers.now() + wait });
  }

  #fail(cause: Cause): void {
    this.#drop();
    this.#set({ state: 'error', cause, retryAt: null });
  }

  #drop(): void {
    this.#line.drop();
    this.#readyAt = null;
  }

  #set(status: ConnectionStatus): void {
    this.#status = status;
    this.#options.onStatus(status);
  }
}
