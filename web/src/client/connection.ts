import { closeCodes, type ClientEvent, type ServerEvent } from '@vela/protocol';
import { backoff } from './backoff';
import { decode, encode } from './decode';

/** The transport's own state, apart from the phase of the session. */
export type ConnectionState = 'not connected' | 'connecting' | 'connected' | 'disconnected' | 'error';

/** Why the connection is not there (any more). */
export type Cause =
  | { kind: 'closed'; code: number; reason: string }
  | { kind: 'malformed'; why: string }
  /** The gateway takes no session with these settings. */
  | { kind: 'refused'; code: string; message: string }
  | { kind: 'socket' };

export interface ConnectionStatus {
  state: ConnectionState;
  cause: Cause | null;
  /** When the next try begins, in ms of the clock; null when none is planned. */
  retryAt: number | null;
  /** Until when the session can be resumed, in ms of the clock, while it waits for that; Infinity when nobody knows. Never in version 1. */
  keptUntil?: number;
}

/** What is used of a WebSocket; a test hands in its own. */
export interface Socket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  readonly readyState: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}

export interface Timers {
  now(): number;
  set(run: () => void, ms: number): unknown;
  clear(id: unknown): void;
}

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

/** Opens a socket; throws when the address or a subprotocol is none. */
export type OpenSocket = (url: string, protocols: string[]) => Socket;

export const openSocket: OpenSocket = (url, protocols) => new WebSocket(url, protocols) as unknown as Socket;

/** A page cannot set headers on a socket, so its token is offered beside the version. The gateway never selects it. */
export function offer(version: string, token: string | null): string[] {
  return token === null ? [version] : [version, `vela.token.${token}`];
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  set: (run, ms) => setTimeout(run, ms),
  clear: (id) => clearTimeout(id as ReturnType<typeof setTimeout>),
};

export const OPEN = 1;

/** A gateway that takes the socket and then says nothing is as good as none. */
export const readyWithin = 10_000;

/** A session that lived this long was no part of a series of failures. */
export const provenAfter = 10_000;

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
  #socket: Socket | null = null;
  #timer: unknown = null;
  #tries = 0;
  #byItself = false; // whether this try was made without being asked
  #readyAt: number | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
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
    if (!this.#socket || this.#socket.readyState !== OPEN) return false;
    try {
      this.#socket.send(encode(event));
      return true;
    } catch {
      return false; // the close event that follows says the rest
    }
  }

  #try(byItself: boolean): void {
    this.#drop();
    this.#byItself = byItself;
    this.#set({ state: 'connecting', cause: null, retryAt: null });
    let socket: Socket;
    try {
      const token = this.#options.token?.() ?? null;
      socket = (this.#options.socket ?? openSocket)(this.#options.url(), token === null ? [] : offer('vela.v1', token));
    } catch {
      this.#fail({ kind: 'socket' });
      return;
    }
    this.#socket = socket;
    this.#readyAt = null;
    this.#timer = this.#timers.set(() => this.#lost({ kind: 'closed', code: 1006, reason: 'no session' }), readyWithin);
    // A socket that was dropped may still speak; each handler first asks whether it is the one.
    socket.onopen = () => {
      if (this.#socket === socket) this.#set({ state: 'connected', cause: null, retryAt: null });
    };
    socket.onmessage = (event) => {
      if (this.#socket === socket) this.#receive(event.data);
    };
    socket.onerror = () => {
      if (this.#socket === socket) this.#socketError();
    };
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#closed(event.code, event.reason);
    };
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
          this.#stopTimer();
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
    this.#timer = this.#timers.set(() => this.#try(true), wait);
    this.#set({ state: 'disconnected', cause, retryAt: this.#timers.now() + wait });
  }

  #fail(cause: Cause): void {
    this.#drop();
    this.#set({ state: 'error', cause, retryAt: null });
  }

  #drop(): void {
    this.#stopTimer();
    const socket = this.#socket;
    this.#socket = null;
    this.#readyAt = null;
    if (!socket) return;
    try {
      socket.close(1000);
    } catch {
      // Closing is all that was wanted.
    }
  }

  #stopTimer(): void {
    if (this.#timer !== null) this.#timers.clear(this.#timer);
    this.#timer = null;
  }

  #set(status: ConnectionStatus): void {
    this.#status = status;
    this.#options.onStatus(status);
  }
}
