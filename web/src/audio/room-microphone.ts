import { hear, MicrophoneError, openStream, type MicrophoneEvents, type OpenMicrophone } from './microphone';

/** Who carries a microphone's track; null takes it back. */
export type Carry = (track: MediaStreamTrack | null) => Promise<void>;

/**
 * The one microphone of a page in a room, for whoever has it open: the hold of the talk control, and hands-free talking. It is opened for the
 * first of them and given back after the last.
 */
export class RoomMicrophone {
  #carry: Carry;
  #users = 0;
  #opened: Promise<Opened> | null = null;

  constructor(carry: Carry) {
    this.#carry = carry;
  }

  /** As openMicrophone(), and carried. The levels come from a worklet of its own. Throws only MicrophoneError. */
  async open(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone> {
    this.#users++;
    this.#opened ??= this.#begin(deviceId);
    try {
      const { stream } = await this.#opened;
      const heard = await hear(stream.clone(), { ...events, onLost: () => this.#end(() => events.onLost()) });
      return { ...heard, close: () => this.#end(() => heard.close()) };
    } catch (error) {
      this.#end(() => {});
      throw error;
    }
  }

  async #begin(deviceId: string): Promise<Opened> {
    const stream = await openStream(deviceId);
    const carried = stream.getAudioTracks()[0]!.clone();
    try {
      await this.#carry(carried);
    } catch {
      stop(stream, carried);
      throw new MicrophoneError('broken');
    }
    return { stream, carried };
  }

  /** One of those who had it open has it no more. */
  #end(then: () => void): void {
    then();
    if (--this.#users > 0) return;
    const opened = this.#opened;
    this.#opened = null;
    void opened?.then(
      ({ stream, carried }) => {
        void this.#carry(null).catch(() => {}); // a room that is gone has taken it with it
        stop(stream, carried);
      },
      () => {}, // it was never open
    );
  }
}

interface Opened {
  stream: MediaStream;
  carried: MediaStreamTrack;
}

function stop(stream: MediaStream, carried: MediaStreamTrack): void {
  for (const track of [...stream.getTracks(), carried]) track.stop();
}
