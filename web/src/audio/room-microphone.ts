import { hear, MicrophoneError, openStream, type MicrophoneEvents, type OpenMicrophone } from './microphone';

/** Who carries a microphone's track; null takes it back. */
export type Carry = (track: MediaStreamTrack | null) => Promise<void>;

/** As openMicrophone(), for a microphone whose sound somebody else carries. Its levels come from the worklet. Throws only MicrophoneError. */
export async function openCarried(deviceId: string, events: MicrophoneEvents, carry: Carry): Promise<OpenMicrophone> {
  const stream = await openStream(deviceId);
  // A track of its own: whoever carries it mutes it, and the levels are to be seen at once.
  const carried = stream.getAudioTracks()[0]!.clone();
  const giveBack = (): void => {
    void carry(null).catch(() => {}); // a room that is gone has taken it with it
    carried.stop();
  };
  let heard: OpenMicrophone;
  try {
    heard = await hear(stream, { ...events, onLost: () => (giveBack(), events.onLost()) });
  } catch (error) {
    carried.stop();
    throw error;
  }
  try {
    await carry(carried);
  } catch {
    heard.close();
    giveBack();
    throw new MicrophoneError('broken');
  }
  return { ...heard, close: () => (heard.close(), giveBack()) };
}
