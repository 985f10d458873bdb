import type { FromPlayback, ToPlayback } from './playback-worklet';
import workletAddress from './playback-worklet?worker&url';

export interface PlayerEvents {
  /** Where in the answer the sound ends that has left the speaker, in ms. */
  onPlayed(ms: number): void;
  onLevel(level: number): void;
  /** The browser lets no sound out before somebody presses something; or it does again. */
  onBlocked(blocked: boolean): void;
  /** This browser plays nothing. */
  onBroken(): void;
}

export interface Player {
  /** Plays samples of -1 to 1 after what came before; at is where in the answer they lie, in samples of soundRate. */
  push(samples: Float32Array<ArrayBuffer>, at: number): void;
  /** Falls silent within one quantum, then says where in the answer the sound ended that had been rendered, in ms. */
  cut(): Promise<number>;
  /** To be called while somebody presses something. */
  wake(): void;
}

/** What may come before the worklet is there: of 40 ms each, two seconds of sound. */
const mostEarly = 50;

/** Past this the audio thread does not answer, as it does not while the browser lets no sound out. */
const answersWithin = 100;

/** Opens the output. It never throws: where there is none, onBroken says so. */
export function openPlayer(events: PlayerEvents): Player {
  let context: AudioContext;
  try {
    context = new AudioContext({ latencyHint: 'interactive' });
  } catch {
    events.onBroken();
    return { push: () => {}, cut: async () => 0, wake: () => {} };
  }
  return new Output(context, events);
}

class Output implements Player {
  #context: AudioContext;
  #events: PlayerEvents;
  #port: MessagePort | null = null;
  #early: ToPlayback[] = []; // what came before the worklet was there
  #cuts = new Map<number, (playedMs: number) => void>();
  #cut = 0;
  #last = 0; // what the worklet said last, in ms
  #begun = false; // whether something was pushed since the last cut
  #blocked = false;

  constructor(context: AudioContext, events: PlayerEvents) {
    this.#context = context;
    this.#events = events;
    context.onstatechange = () => this.#tellBlocked();
    context.audioWorklet.addModule(workletAddress).then(
      () => this.#begin(),
      () => events.onBroken(),
    );
  }

  #begin(): void {
    const node = new AudioWorkletNode(this.#context, 'vela-playback', { numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [1] });
    node.port.onmessage = (event: MessageEvent<FromPlayback>) => this.#told(event.data);
    node.connect(this.#context.destination);
    this.#port = node.port;
    for (const message of this.#early.splice(0)) this.#post(message);
  }

  push(samples: Float32Array<ArrayBuffer>, at: number): void {
    this.#post({ samples, at });
    if (!this.#begun) this.wake(); // once for an answer: a browser that refuses complains each time
    this.#begun = true;
    this.#tellBlocked();
  }

  cut(): Promise<number> {
    const id = ++this.#cut;
    const last = this.#last;
    this.#last = 0;
    this.#early = [];
    this.#begun = false;
    if (!this.#port) return Promise.resolve(0);
    this.#post({ cut: id });
    return new Promise((done) => {
      const late = setTimeout(() => this.#cuts.get(id)?.(last), answersWithin);
      this.#cuts.set(id, (playedMs) => {
        clearTimeout(late);
        this.#cuts.delete(id);
        done(playedMs);
      });
    });
  }

  wake(): void {
    if (this.#context.state !== 'running') void this.#context.resume().catch(() => {});
  }

  #post(message: ToPlayback): void {
    if (!this.#port) {
      if (this.#early.length < mostEarly) this.#early.push(message);
    } else if ('samples' in message) this.#port.postMessage(message, [message.samples.buffer]);
    else this.#port.postMessage(message);
  }

  #told(message: FromPlayback): void {
    if ('cut' in message) return this.#cuts.get(message.cut)?.(message.playedMs);
    // A report from before a cut that is on its way says nothing any more: the answer to the cut does.
    if (this.#cuts.size > 0) return;
    const { playedMs, level } = message;
    this.#last = playedMs;
    const cut = this.#cut;
    // What was rendered is heard when it has gone through the output.
    setTimeout(() => {
      if (cut !== this.#cut) return;
      this.#events.onLevel(level);
      this.#events.onPlayed(playedMs);
    }, 1000 * (this.#context.outputLatency || this.#context.baseLatency || 0));
  }

  #tellBlocked(): void {
    const blocked = this.#context.state !== 'running';
    if (blocked === this.#blocked) return;
    this.#blocked = blocked;
    this.#events.onBlocked(blocked);
  }
}
