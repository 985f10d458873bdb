/** A signal as it is posted: what else an envelope has the gateway fills in. */
export interface MidiSignal {
  type: string;
  /** Unix time in ms. */
  timestamp: number;
  /** The name of the device. */
  source: string;
  payload: Record<string, number | number[]>;
}

/** The high half of a status byte: its type, how many bytes the message has, and what they are. */
const messages: Record<number, { type: string; bytes: 2 | 3; payload(b1: number, b2: number): Record<string, number> }> = {
  0x8: { type: 'midi.note_off', bytes: 3, payload: (note, velocity) => ({ note, velocity }) },
  0x9: { type: 'midi.note_on', bytes: 3, payload: (note, velocity) => ({ note, velocity }) },
  0xb: { type: 'midi.control_change', bytes: 3, payload: (controller, value) => ({ controller, value }) },
  0xc: { type: 'midi.program_change', bytes: 2, payload: (program) => ({ program }) },
  // 14 bits, with the middle at 0.
  0xe: { type: 'midi.pitch_bend', bytes: 3, payload: (low, high) => ({ value: ((high << 7) | low) - 8192 }) },
};

/** Makes a signal of one complete MIDI message; null for one that none is made of, as system messages and aftertouch. */
export function midiSignal(bytes: Uint8Array, device: string, at: number): MidiSignal | null {
  const [status = 0, b1 = 0, b2 = 0] = bytes;
  const message = messages[status >> 4];
  if (!message || bytes.length < message.bytes) return null;
  // MIDI 1.0: a note on without velocity is a note off.
  const type = message.type === 'midi.note_on' && b2 === 0 ? 'midi.note_off' : message.type;
  return { type, timestamp: at, source: device, payload: { channel: (status & 0x0f) + 1, ...message.payload(b1, b2), raw: [...bytes.subarray(0, message.bytes)] } };
}
