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

/** The clock and its timers; a test hands in its own. */
export interface Timers {
  /** Unix time in ms. */
  now(): number;
  /** Returns what clear() takes. */
  set(run: () => void, ms: number): unknown;
  clear(id: unknown): void;
}

/** Opens a socket; throws when the address or a subprotocol is none. */
export type OpenSocket = (url: string, protocols: string[]) => Socket;

const openSocket: OpenSocket = (url, protocols) => new WebSocket(url, protocols) as unknown as Socket;

/** Those of the browser. */
export const systemTimers: Timers = {
  now: () => Date.now(),
  set: (run, ms) => setTimeout(run, ms),
  clear: (id) => clearTimeout(id as ReturnType<typeof setTimeout>),
};

/** A page cannot set headers on a socket, so its token is offered beside the version. The gateway never selects it. */
export function offer(version: string, token: string | null): string[] {
  return token === null ? [version] : [version, `vela.token.${token}`];
}

/** A gateway that takes the socket and then says nothing is as good as none. */
export const readyWithin = 10_000;

/** A session that lived this long was no part of a series of failures. */
export const provenAfter = 10_000;

const OPEN = 1;

/** Who hears what becomes of a line's socket. */
export interface Listener {
  onOpen(): void;
  onMessage(data: unknown): void;
  onError(): void;
  onClose(code: number, reason: string): void;
}

/**
 * One socket at a time, and one thing that is waited for: that it gets somewhere, or the next try. It knows nothing of any version of the protocol:
 * Connection and Client are what they are by what they make of it.
 */
export class Line {
  #listener: Listener;
  #timers: Timers;
  #openSocket: OpenSocket;
  #socket: Socket | null = null;
  #timer: unknown = null;

  constructor(listener: Listener, timers: Timers, open: OpenSocket = openSocket) {
    this.#listener = listener;
    this.#timers = timers;
    this.#openSocket = open;
  }

  /** Opens a socket in place of the one there was; throws when the address or a subprotocol is none. */
  open(url: string, protocols: string[]): void {
    this.drop();
    const socket = this.#openSocket(url, protocols);
    this.#socket = socket;
    // A socket that was dropped may still speak; each handler first asks whether it is the one.
    socket.onopen = () => {
      if (this.#socket === socket) this.#listener.onOpen();
    };
    socket.onmessage = (event) => {
      if (this.#socket === socket) this.#listener.onMessage(event.data);
    };
    socket.onerror = () => {
      if (this.#socket === socket) this.#listener.onError();
    };
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#listener.onClose(event.code, event.reason);
    };
  }

  /** Sends, or says that there was nobody to send to. */
  send(data: string | Uint8Array<ArrayBuffer>): boolean {
    if (!this.#socket || this.#socket.readyState !== OPEN) return false;
    try {
      this.#socket.send(data);
      return true;
    } catch {
      return false; // the close event that follows says the rest
    }
  }

  /** Waits for nothing else. */
  wait(ms: number, run: () => void): void {
    this.stopWaiting();
    this.#timer = this.#timers.set(run, ms);
  }

  stopWaiting(): void {
    if (this.#timer !== null) this.#timers.clear(this.#timer);
    this.#timer = null;
  }

  /** Closes the socket, and hears no more of it; also stops waiting. */
  drop(): void {
    this.stopWaiting();
    const socket = this.#socket;
    this.#socket = null;
    try {
      socket?.close(1000);
    } catch {
      // Closing is all that was wanted.
    }
  }
}
