import type { ServerEventV2, SignalPayload, SignalSubscribePayload } from '@vela/protocol';
import type { Client } from './client';

/** Who is told of the signals that are followed. */
export interface SignalsOptions {
  /** One signal. Their order is that of the gateway; among the events of the session they have no place. */
  onSignal(signal: SignalPayload): void;
  /** So many are missing before the next one, since this connection was too slow. */
  onMissed?(count: number): void;
}

/** The same lists, in any order, are the same filter. */
const key = ({ types = [], sources = [] }: SignalSubscribePayload): string =>
  JSON.stringify([types, sources].map((names) => [...new Set(names)].sort()));

/**
 * The signals of a gateway, beside the session of a Client: those that are followed, and those that a person makes.
 *
 * What a connection follows ends with it, so filters are kept here, and sent again on each. Hand take() every event of the client: it says
 * whether that was about signals. What happens while there is no connection is missed; a gateway without signals, or without the right to
 * them, answers with the error `unsupported`.
 */
export class Signals {
  #client: Pick<Client, 'send'>;
  #o: SignalsOptions;
  #filters = new Map<string, SignalSubscribePayload>();

  constructor(client: Pick<Client, 'send'>, options: SignalsOptions) {
    this.#client = client;
    this.#o = options;
  }

  /** What fits any filter comes, once. A star at the end of a name stands for anything; without lists, everything comes. */
  subscribe(filter: SignalSubscribePayload = {}): void {
    this.#filters.set(key(filter), filter);
    this.#client.send({ type: 'signal.subscribe', payload: filter });
  }

  /** Takes back the filter with the same lists; without any, all of them. */
  unsubscribe(filter: SignalSubscribePayload = {}): void {
    if (key(filter) === key({})) this.#filters.clear();
    else this.#filters.delete(key(filter));
    this.#client.send({ type: 'signal.unsubscribe', payload: filter });
  }

  /** What a person does, to the host. Returns the id that an error about it would name; null when there was nobody to send to. */
  emit(type: `user.${string}`, payload: Record<string, unknown>, correlationId?: string): string | null {
    return this.#client.send({ type: 'signal.emit', payload: { type, payload, ...(correlationId !== undefined && { correlationId }) } });
  }

  take(event: ServerEventV2): boolean {
    switch (event.type) {
      case 'session.ready':
        for (const payload of this.#filters.values()) this.#client.send({ type: 'signal.subscribe', payload });
        return false;
      case 'signal':
        this.#o.onSignal(event.payload);
        return true;
      case 'signal.missed':
        this.#o.onMissed?.(event.payload.count);
        return true;
      default:
        return false;
    }
  }
}
