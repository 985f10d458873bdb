import type { Chunk } from './chunker';
import type { FromWorklet, ToWorklet } from './worklet';
import workletAddress from './worklet?worker&url';

/** Why there is no microphone, in the words of the page. */
export type MicrophoneFault = 'refused' | 'none' | 'in use' | 'insecure' | 'broken';

export class MicrophoneError extends Error {
  constructor(readonly fault: MicrophoneFault) {
    super(`microphone: ${fault}`);
  }
}

export interface OpenMicrophone {
  /** Which device it is, as the browser names it. */
  deviceId: string;
  /** Hands out everything that was captured before the call, then resolves. */
  flush(): Promise<void>;
  close(): void;
}

export interface MicrophoneEvents {
  onChunk(chunk: Chunk): void;
  /** The device went away, or the user took the permission back. */
  onLost(): void;
}

/** Opens the microphone and lets its worklet run. Throws only MicrophoneError. */
export async function openMicrophone(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone> {
  return hear(await openStream(deviceId), events);
}

/** Opens the microphone alone. Throws only MicrophoneError. */
export async function openStream(deviceId: string): Promise<MediaStream> {
  // Browsers hide the devices from pages that came over plain http from another machine.
  if (!navigator.mediaDevices?.getUserMedia) throw new MicrophoneError('insecure');
  return navigator.mediaDevices
    .getUserMedia({
      audio: {
        channelCount: 1,
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
        ...(deviceId && { deviceId: { ideal: deviceId } }),
      },
    })
    .catch((error: unknown) => {
      throw new MicrophoneError(faultOf(error));
    });
}

/** Lets the worklet run on an open microphone, which is its own from now on. Throws only MicrophoneError. */
export async function hear(stream: MediaStream, events: MicrophoneEvents): Promise<OpenMicrophone> {
  try {
    return await listen(stream, events);
  } catch (error) {
    for (const track of stream.getTracks()) track.stop();
    throw error instanceof MicrophoneError ? error : new MicrophoneError('broken');
  }
}

async function listen(stream: MediaStream, events: MicrophoneEvents): Promise<OpenMicrophone> {
  const context = new AudioContext({ latencyHint: 'interactive' });
  const flushing = new Map<number, () => void>();
  let flushes = 0;
  let closed = false;
  const close = (): void => {
    if (closed) return;
    closed = true;
    for (const track of stream.getTracks()) track.stop();
    void context.close().catch(() => {});
    for (const done of flushing.values()) done();
  };
  try {
    await context.audioWorklet.addModule(workletAddress);
    await context.resume();
  } catch (error) {
    close();
    throw error;
  }
  const node = new AudioWorkletNode(context, 'vela-capture', { numberOfInputs: 1, numberOfOutputs: 1, outputChannelCount: [1] });
  node.port.onmessage = (event: MessageEvent<FromWorklet>) => {
    const message = event.data;
    if ('chunk' in message) {
      if (!closed) events.onChunk(message.chunk);
      return;
    }
    flushing.get(message.flushed)?.();
    flushing.delete(message.flushed);
  };
  context.createMediaStreamSource(stream).connect(node);
  // The worklet writes nothing, so this is silent; some browsers run only what leads to the destination.
  node.connect(context.destination);
  const track = stream.getAudioTracks()[0];
  track?.addEventListener('ended', () => {
    if (closed) return;
    close();
    events.onLost();
  });
  return {
    deviceId: track?.getSettings().deviceId ?? '',
    flush: () =>
      new Promise((done) => {
        if (closed) return done();
        const id = ++flushes;
        // A suspended context never answers; what it has not given in a second it will not give.
        const late = setTimeout(done, 1000);
        flushing.set(id, () => {
          clearTimeout(late);
          done();
        });
        node.port.postMessage({ flush: id } satisfies ToWorklet);
      }),
    close,
  };
}

/** The browsers' names of the reasons. */
export function faultOf(error: unknown): MicrophoneFault {
  switch (error instanceof Error || error instanceof DOMException ? error.name : '') {
    case 'NotAllowedError':
    case 'SecurityError':
      return 'refused';
    case 'NotFoundError':
    case 'OverconstrainedError':
      return 'none';
    case 'NotReadableError':
    case 'AbortError':
      return 'in use';
    default:
      return 'broken';
  }
}

export interface InputDevice {
  id: string;
  label: string;
}

/** The microphones, as far as the browser tells: nothing before the first permission. */
export async function inputDevices(): Promise<InputDevice[]> {
  try {
    const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    return all
      .filter((d) => d.kind === 'audioinput' && d.deviceId !== '' && d.label !== '')
      .map((d) => ({ id: d.deviceId, label: d.label }));
  } catch {
    return [];
  }
}
