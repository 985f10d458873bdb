import { describe, expect, test } from 'vitest';
import { Forwarder, mostWaiting, type MidiAccess, type MidiInput } from './forwarder';
import { midiSignal } from './message';

describe('a message of a device', () => {
  test.each([
    ['note on', [0x90, 60, 100], 'midi.note_on', { channel: 1, note: 60, velocity: 100 }],
    ['note on without velocity', [0x9f, 60, 0], 'midi.note_off', { channel: 16, note: 60, velocity: 0 }],
    ['note off', [0x81, 60, 64], 'midi.note_off', { channel: 2, note: 60, velocity: 64 }],
    ['control change', [0xb0, 7, 127], 'midi.control_change', { channel: 1, controller: 7, value: 127 }],
    ['program change', [0xc3, 12], 'midi.program_change', { channel: 4, program: 12 }],
    ['pitch bend, in the middle', [0xe0, 0, 64], 'midi.pitch_bend', { channel: 1, value: 0 }],
    ['pitch bend, lowest', [0xe0, 0, 0], 'midi.pitch_bend', { channel: 1, value: -8192 }],
    ['pitch bend, highest', [0xe0, 127, 127], 'midi.pitch_bend', { channel: 1, value: 8191 }],
  ])('%s', (_, bytes, type, payload) => {
    expect(midiSignal(Uint8Array.from(bytes), 'nanoKEY2', 5)).toEqual({ type, timestamp: 5, source: 'nanoKEY2', payload: { ...payload, raw: bytes } });
  });

  test.each([
    ['nothing', []],
    ['aftertouch of a key', [0xa0, 60, 1]],
    ['aftertouch of a channel', [0xd0, 60]],
    ['a clock', [0xf8]],
    ['system exclusive', [0xf0, 1, 2, 0xf7]],
    ['a note that is cut', [0x90, 60]],
    ['data without a status', [0x3c, 0x40, 0x00]],
  ])('%s is no signal', (_, bytes) => expect(midiSignal(Uint8Array.from(bytes), 'd', 5)).toBeNull());
});

/** There is no hardware in a test: these stand in for the browser's devices. */
class FakeInput implements MidiInput {
  state = 'connected';
  onmidimessage: MidiInput['onmidimessage'] = null;

  constructor(
    readonly id: string,
    readonly name: string | null,
  ) {}

  play(...bytes: number[]): void {
    this.onmidimessage?.({ data: Uint8Array.from(bytes) });
  }
}

function browser(inputs: FakeInput[], { refuses = false, status = 200 } = {}) {
  const posted: { source: string; type: string; payload: Record<string, unknown> }[] = [];
  let answer: (() => void) | null = null;
  let slow = false;
  const fetch = (async (path: string, init: RequestInit) => {
    expect([path, init.method]).toEqual(['/api/signal', 'POST']);
    posted.push(JSON.parse(init.body as string));
    if (slow) await new Promise<void>((go) => (answer = go));
    return new Response('{"ok":true}', { status });
  }) as typeof globalThis.fetch;
  const access: MidiAccess = { inputs, onstatechange: null };
  const midi = new Forwarder({ token: () => null, fetch }, refuses ? () => Promise.reject(new Error('no')) : () => Promise.resolve(access), () => 7);
  return { midi, posted, access, slow: () => (slow = true), answer: () => answer?.() };
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await Promise.resolve();
};

describe('forwarding', () => {
  test('what is played goes to the gateway, in order, once it was asked for', async () => {
    const input = new FakeInput('1', 'nanoKEY2');
    const { midi, posted } = browser([input]);
    input.play(0x90, 60, 100);
    await midi.start();
    expect(midi.state.value).toMatchObject({ state: 'on', devices: [{ id: '1', name: 'nanoKEY2' }] });
    input.play(0x90, 60, 100);
    input.play(0xf8);
    input.play(0x80, 60, 0);
    await settle();
    expect(posted.map((p) => [p.type, p.source])).toEqual([
      ['midi.note_on', 'nanoKEY2'],
      ['midi.note_off', 'nanoKEY2'],
    ]);
    expect(midi.state.value).toMatchObject({ sent: 2, lost: 0 });
  });

  test('a gateway that is slow holds nothing up: what waits has a bound, and what is lost is counted', async () => {
    const input = new FakeInput('1', 'x');
    const { midi, posted, slow } = browser([input]);
    slow();
    await midi.start();
    for (let i = 0; i < mostWaiting + 11; i++) input.play(0xb0, 7, i % 128);
    await settle();
    expect(posted).toHaveLength(1);
    expect(midi.state.value).toMatchObject({ sent: 0, lost: 10 });
  });

  test('what the gateway refuses is lost, and the next one is sent all the same', async () => {
    const input = new FakeInput('1', 'x');
    const { midi, posted } = browser([input], { status: 403 });
    await midi.start();
    input.play(0x90, 60, 1);
    input.play(0x90, 61, 1);
    await settle();
    expect(posted).toHaveLength(2);
    expect(midi.state.value).toMatchObject({ sent: 0, lost: 2 });
  });

  test('a device that is plugged in is heard, and one that is gone is not shown', async () => {
    const inputs = [new FakeInput('1', null)];
    const { midi, posted, access } = browser(inputs);
    await midi.start();
    expect(midi.state.value.devices).toEqual([{ id: '1', name: 'MIDI device' }]);
    inputs[0]!.state = 'disconnected';
    inputs.push(new FakeInput('2', 'late'));
    access.onstatechange!();
    expect(midi.state.value.devices).toEqual([{ id: '2', name: 'late' }]);
    inputs[1]!.play(0xc0, 5);
    await settle();
    expect(posted.map((p) => p.source)).toEqual(['late']);
  });

  test('who stops it is heard no more', async () => {
    const input = new FakeInput('1', 'x');
    const { midi, posted, access } = browser([input]);
    await midi.start();
    midi.stop();
    input.play(0x90, 60, 1);
    await settle();
    expect(posted).toEqual([]);
    expect([access.onstatechange, midi.state.value.state]).toEqual([null, 'off']);
  });

  test('a browser that refuses can be asked again; one that has none is not asked', async () => {
    const { midi } = browser([], { refuses: true });
    await midi.start();
    expect(midi.state.value.state).toBe('refused');
    const none = new Forwarder({ token: () => null }, null, () => 0);
    await none.start();
    expect(none.state.value.state).toBe('none');
  });
});
