import type { ArtifactPayload, StatusPayload } from '@vela/protocol';
import { isObject } from './decode';
import { isPayload } from './decode2';
import { fromBase64 } from './base64';

/** What an agent says on ganglia-events, the data channel of a LiveKit room. The Go package protocol/ganglia says what each is for. */
export type GangliaEvent =
  | StatusPayload
  | ArtifactPayload
  | { type: 'content'; delta: string }
  | { type: 'agent_transcript'; segmentId: string; delta: string; text: string; final: boolean }
  | { type: 'user_transcript'; segmentId: string; text: string; final: boolean }
  | { type: 'system_event'; severity: 'error' | 'success'; title: string; message: string }
  | { type: 'session_hold'; reason: string }
  | { type: 'bootstrap'; phase: 'start' | 'end' }
  | { type: 'pipeline_info'; stt: string; tts: string; llm: string };

/** What a client says there. */
export type GangliaCommand = { type: 'tts-mode'; value: 'on' | 'off' } | { type: 'text_message'; text: string } | { type: 'end_voice_session' };

export const isStatusEvent = (event: GangliaEvent): event is StatusPayload => event.type === 'status';
export const isArtifactEvent = (event: GangliaEvent): event is ArtifactPayload => event.type === 'artifact';
export const isContentEvent = (event: GangliaEvent): event is GangliaEvent & { type: 'content' } => event.type === 'content';

/** The fields of each type that a reader may rely on. An action, a severity or an artifact_type that is not known yet is no mistake. */
const fields: { [T in Exclude<GangliaEvent['type'], 'status' | 'artifact'>]: Record<string, 'string' | 'boolean'> } = {
  content: { delta: 'string' },
  agent_transcript: { segmentId: 'string', delta: 'string', text: 'string', final: 'boolean' },
  user_transcript: { segmentId: 'string', text: 'string', final: 'boolean' },
  system_event: { severity: 'string', title: 'string', message: 'string' },
  session_hold: { reason: 'string' },
  bootstrap: { phase: 'string' },
  pipeline_info: { stt: 'string', tts: 'string', llm: 'string' },
};

/** Reads one object of the channel; null for one that is none, or not known. Never throws. */
export function readGanglia(object: Uint8Array): GangliaEvent | null {
  const value = parse(object);
  if (!isObject(value) || typeof value.type !== 'string') return null;
  const { type } = value;
  if (type === 'status' || type === 'artifact') return isPayload(type, value) ? (value as unknown as GangliaEvent) : null;
  if (!Object.hasOwn(fields, type)) return null;
  const wanted = Object.entries(fields[type as keyof typeof fields]);
  return wanted.every(([name, kind]) => typeof value[name] === kind) ? (value as unknown as GangliaEvent) : null;
}

const decoder = new TextDecoder();

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
}

/** Why a transfer was given up. */
export type Drop = 'transfer_id' | 'total_chunks' | 'chunk_index' | 'data' | 'size' | 'crowded' | 'late';

/** What a packet came to: an object, a part of one or what was there already, or nothing that can be read. */
export type Joined = { kind: 'object'; object: Uint8Array } | { kind: 'none' } | { kind: 'bad'; why: Drop | 'packet' };

interface Transfer {
  pieces: Map<number, Uint8Array>;
  total: number;
  bytes: number;
  /** When its last chunk came, in ms. */
  last: number;
}

const mostTransfers = 32;
const longestTransfer = 16 * 2 ** 20;
const mostChunks = longestTransfer / 1024;
const longestSilence = 30_000;
const longestId = 64;
const longestPacket = 64 * 2 ** 10;
const mostClosed = 8 * mostTransfers;

const none = { kind: 'none' } as const;

/**
 * Puts the chunks of long objects together again, in whatever order they come. What it keeps is bounded: 32 open transfers of 16 MiB each, of
 * which the one that waited longest goes when one more begins, and any that gets no new chunk for 30 s.
 *
 * A lost connection ends all transfers: go on with a new Joiner. Never throws.
 */
export class Joiner {
  #open = new Map<string, Transfer>();
  #closed = new Set<string>(); // ids of the last transfers that ended, whole or not, oldest first
  #dropped = new Map<Drop, number>();

  /** How many transfers were given up so far, by why. */
  get dropped(): Partial<Record<Drop, number>> {
    return Object.fromEntries(this.#dropped);
  }

  /** Takes the next packet, which came at now, in ms. A packet that is no chunk is an object as it is. */
  join(packet: Uint8Array, now: number): Joined {
    this.expire(now);
    const value = packet.length > longestPacket ? undefined : parse(packet);
    if (value === undefined) return { kind: 'bad', why: 'packet' };
    if (!isObject(value) || value.type !== 'chunk') return { kind: 'object', object: packet };
    const id = typeof value.transfer_id === 'string' ? value.transfer_id : '';
    if (this.#closed.has(id)) return none;
    const { chunk_index: index, total_chunks: total, data } = value;
    if (id === '' || id.length > longestId) return this.#drop(id, 'transfer_id');
    if (!isCount(total) || total === 0) return this.#drop(id, 'total_chunks');
    if (total > mostChunks) return this.#drop(id, 'size');
    if (!isCount(index) || index >= total) return this.#drop(id, 'chunk_index');
    if (typeof data !== 'string') return this.#drop(id, 'data');
    return this.#add(id, index, total, data, now);
  }

  /** Gives up the transfers that have waited too long at now. join() does it too; this one is for a client that gets no packets. */
  expire(now: number): void {
    for (const [id, { last }] of this.#open) {
      if (now - last > longestSilence) this.#drop(id, 'late');
    }
  }

  #add(id: string, index: number, total: number, data: string, now: number): Joined {
    const transfer = this.#open.get(id) ?? this.#begin(id, total);
    if (transfer.total !== total) return this.#drop(id, 'total_chunks');
    if (transfer.pieces.has(index)) return none;
    const piece = strictBase64(data);
    if (!piece) return this.#drop(id, 'data');
    transfer.bytes += piece.length;
    if (transfer.bytes > longestTransfer) return this.#drop(id, 'size');
    transfer.pieces.set(index, piece);
    transfer.last = now;
    if (transfer.pieces.size < total) return none;
    this.#close(id);
    return { kind: 'object', object: joined(transfer) };
  }

  #begin(id: string, total: number): Transfer {
    if (this.#open.size >= mostTransfers) {
      const [quietest] = [...this.#open].reduce((a, b) => (b[1].last < a[1].last ? b : a));
      this.#drop(quietest, 'crowded');
    }
    const transfer = { pieces: new Map<number, Uint8Array>(), total, bytes: 0, last: 0 };
    this.#open.set(id, transfer);
    return transfer;
  }

  #drop(id: string, why: Drop): Joined {
    this.#dropped.set(why, (this.#dropped.get(why) ?? 0) + 1);
    this.#close(id);
    return { kind: 'bad', why };
  }

  /** Forgets a transfer but for its id: its late chunks, which reach a peer twice at times, would begin it again. */
  #close(id: string): void {
    this.#open.delete(id);
    if (id === '' || id.length > longestId) return;
    this.#closed.add(id);
    const [oldest] = this.#closed;
    if (this.#closed.size > mostClosed) this.#closed.delete(oldest!);
  }
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

/** atob takes blanks, and text without its padding. */
function strictBase64(text: string): Uint8Array | null {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text) ? fromBase64(text) : null;
}

function joined({ pieces, total, bytes }: Transfer): Uint8Array {
  const object = new Uint8Array(bytes);
  let at = 0;
  for (let i = 0; i < total; i++) {
    object.set(pieces.get(i)!, at);
    at += pieces.get(i)!.length;
  }
  return object;
}
