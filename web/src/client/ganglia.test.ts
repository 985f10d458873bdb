import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isArtifactEvent, isContentEvent, isStatusEvent, Joiner, readGanglia, type Joined } from './ganglia';
import { base64 } from './base64';

// The very files that the Go tests read and write.
const testdata = (name: string): string => readFileSync(`../protocol/ganglia/testdata/${name}`, 'utf8');

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (joined: Joined): string | null => (joined.kind === 'object' ? new TextDecoder().decode(joined.object) : null);
const chunk = (transfer_id: string, chunk_index: number, total_chunks: number, data: Uint8Array): Uint8Array =>
  bytes(JSON.stringify({ type: 'chunk', transfer_id, chunk_index, total_chunks, data: base64(data) }));

interface Vector {
  name: string;
  steps: { at?: number; packet: string; object?: string; error?: string }[];
  dropped: Record<string, number>;
}

describe('the transfers that Go reads as well', () => {
  for (const { name, steps, dropped } of JSON.parse(testdata('transfers.json')) as Vector[]) {
    it(name, () => {
      const joiner = new Joiner();
      for (const { at = 0, packet, object, error } of steps) {
        const got = joiner.join(bytes(packet), at);
        expect(text(got)).toBe(object ?? null);
        expect(got.kind === 'bad' ? got.why : undefined).toBe(error);
      }
      expect(joiner.dropped).toEqual(dropped);
    });
  }
});

describe('the objects that Go writes', () => {
  const { events, commands } = JSON.parse(testdata('objects.json')) as Record<string, Record<string, object>>;
  for (const [name, object] of Object.entries(events!)) {
    it(`reads ${name}`, () => {
      const event = readGanglia(bytes(JSON.stringify(object)));
      expect(event).toEqual(object);
      const { type } = object as { type: string };
      expect([isStatusEvent(event!), isArtifactEvent(event!), isContentEvent(event!)]).toEqual([type === 'status', type === 'artifact', type === 'content']);
    });
  }
  it('takes no command for an event', () => {
    for (const object of Object.values(commands!)) expect(readGanglia(bytes(JSON.stringify(object)))).toBeNull();
  });
  it('passes over what is none', () => {
    for (const object of [
      '', '[]', 'null', '{', '{"type":1}', '{"type":"constructor"}', '{"type":"chunk"}', '{"type":"status"}', '{"type":"status","action":"x","detail":1}',
      '{"type":"artifact"}', '{"type":"session_hold"}', '{"type":"content","delta":["a"]}', '['.repeat(60_000),
    ]) {
      expect(readGanglia(bytes(object))).toBeNull();
    }
  });
});

describe('what is kept', () => {
  const a = bytes('a');

  it('is 32 transfers, without the one that waited longest', () => {
    const joiner = new Joiner();
    for (let i = 0; i < 32; i++) joiner.join(chunk(`${i}`, 0, 3, a), i);
    joiner.join(chunk('0', 1, 3, a), 40);
    joiner.join(chunk('32', 0, 3, a), 41);
    expect(joiner.dropped).toEqual({ crowded: 1 });
    expect(text(joiner.join(chunk('0', 2, 3, a), 42))).toBe('aaa');
    joiner.join(chunk('1', 1, 3, a), 43);
    expect(text(joiner.join(chunk('1', 2, 3, a), 44))).toBeNull();
  });

  it('is 16 MiB of each', () => {
    const joiner = new Joiner();
    const size = 47 * 1024;
    const data = base64(new Uint8Array(size)); // encoded once: it is much
    const total = Math.ceil((16 * 2 ** 20) / size);
    const rest = 16 * 2 ** 20 - (total - 1) * size;
    for (const [id, more] of [['a', 1], ['b', 0]] as const) {
      for (let i = 0; i < total - 1; i++) {
        joiner.join(bytes(`{"type":"chunk","transfer_id":"${id}","chunk_index":${i},"total_chunks":${total},"data":"${data}"}`), 0);
      }
      const got = joiner.join(chunk(id, total - 1, total, new Uint8Array(rest + more)), 0);
      expect(got.kind).toBe(more ? 'bad' : 'object');
      if (got.kind === 'object') expect(got.object.length).toBe(16 * 2 ** 20);
    }
    expect(joiner.dropped).toEqual({ size: 1 });
  });

  it('is nothing of a packet that is too long', () => {
    const joiner = new Joiner();
    const most = `"${'x'.repeat(64 * 1024 - 2)}"`;
    expect(text(joiner.join(bytes(most), 0))).toBe(most);
    expect(joiner.join(bytes(`${most} `), 0)).toEqual({ kind: 'bad', why: 'packet' });
  });

  it('is 256 names of what has ended, the oldest of which goes', () => {
    const joiner = new Joiner();
    for (let i = 0; i < 256; i++) joiner.join(chunk(`${i}`, 0, 1, a), 0);
    expect(text(joiner.join(chunk('0', 0, 1, a), 0))).toBeNull();
    joiner.join(chunk('256', 0, 1, a), 0);
    expect(text(joiner.join(chunk('0', 0, 1, a), 0))).toBe('a');
    expect(text(joiner.join(chunk('2', 0, 1, a), 0))).toBeNull();
  });

  it('goes in time without a packet', () => {
    const joiner = new Joiner();
    joiner.join(chunk('a', 0, 2, a), 0);
    joiner.expire(30_000);
    expect(joiner.dropped).toEqual({});
    joiner.expire(30_001);
    expect(joiner.dropped).toEqual({ late: 1 });
  });
});

it('joins any text in any order', () => {
  let seed = 7;
  const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
  const joiner = new Joiner();
  for (let n = 0; n < 50; n++) {
    const whole = Array.from({ length: 200 + random(20_000) }, () => String.fromCodePoint([97, 228, 0x8a9e, 0x1f600, 10, 34][random(6)]!)).join('');
    const object = bytes(whole);
    const size = 3 * (1 + random(2000)) + random(3); // also where others cut: each piece is padded then
    const pieces = Array.from({ length: Math.ceil(object.length / size) }, (_, i) => object.subarray(i * size, (i + 1) * size));
    const order = pieces.map((_, i) => i).sort(() => random(3) - 1);
    const got = order.map((i) => text(joiner.join(chunk(`t${n}`, i, pieces.length, pieces[i]!), n))).filter((t) => t !== null);
    expect(got).toEqual([whole]);
  }
  expect(joiner.dropped).toEqual({});
});
