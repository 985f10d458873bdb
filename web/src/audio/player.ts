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
  /** The same, but keeps what waits: resume() goes on there, and nothing is left out or heard twice. It holds across a cut. */
  pause(): Promise<number>;
  resume(): void;
  /** To be called while somebody presses something, and when sound is to be expected. */
  wake(): void;
  /** Gives the output back. Nothing is heard of it after that. */
  close(): void;
}

/** What may come before the worklet is there: of 40 ms each, two seconds of sound. */
const mostEarly = 50;

/** Past this the audio thread does not answer: a machine that is busy may keep it waiting, and it never does while the browser lets no sound out. */
const answersWithin = { running: 1000, otherwise: 100 };

/** An output that had nothing to play for so long is suspended. */
const restsAfter = 10_000;

/** A browser that has not let sound out by then waits for somebody to press something. */
const startsWithin = 500;

/** Opens the output. It never throws: where there is none, onBroken says so. */
export function openPlayer(events: PlayerEvents): Player {
  let context: AudioContext;
  try {
    context = new AudioContext({ latencyHint: 'interactive' });
  } catch {
    events.onBroken();
    const nothing = (): void => {};
    const never = async (): Promise<number> => 0;
    return { push: nothing, cut: never, pause: never, resume: nothing, wake: nothing, close: nothing };
  }
  return new Output(context, events);
}

class Output implements Player {
  #context: AudioContext;
  #events: PlayerEvents;
  #port: MessagePort | null = null;
  #early: ToPlayback[] = []; // what came before the worklet was there
  #asked = new Map<number, (playedMs: number) => void>(); // for silence
  #ask = 0;
  #cut = 0; // the number of the last one
  #last = 0; // what the worklet said last, in ms
  #begun = false; // whether something was pushed since the last cut
  #paused = false;
  #closed = false;
  #blocked = false;
  #rest: ReturnType<typeof setTimeout> | undefined; // until it is suspended
  #start: ReturnType<typeof setTimeout> | undefined; // until it counts as blocked

  constructor(context: AudioContext, events: PlayerEvents) {
    this.#context = context;
    this.#events = events;
    context.onstatechange = () => this.#tellBlocked();
    this.#restLater();
    context.audioWorklet.addModule(workletAddress).then(
      () => this.#begin(),
      () => !this.#closed && events.onBroken(),
    );
  }

  #begin(): void {
    if (this.#closed) return;
    const node = new AudioWorkletNode(this.#context, 'vela-playback', { numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [1] });
    node.port.onmessage = (event: MessageEvent<FromPlayback>) => this.#told(event.data);
    node.connect(this.#context.destination);
    this.#port = node.port;
    // What was asked for before it was there.
    if (this.#cut > 0) this.#post({ cut: this.#cut });
    if (this.#paused) this.#post({ pause: 0 });
    for (const message of this.#early.splice(0)) this.#post(message);
  }

  push(samples: Float32Array<ArrayBuffer>, at: number): void {
    this.#post({ samples, at });
    clearTimeout(this.#rest);
    if (this.#begun) return;
    this.#begun = true;
    this.wake(); // once for an answer: a browser that refuses complains each time
    clearTimeout(this.#start);
    this.#start = setTimeout(() => this.#tellBlocked(), startsWithin);
  }

  cut(): Promise<number> {
    const last = this.#last;
    this.#cut = ++this.#ask;
    this.#last = 0;
    this.#early = [];
    this.#begun = false;
    this.#tellBlocked();
    this.#restLater();
    return this.#port ? this.#silence({ cut: this.#ask }, last) : Promise.resolve(0);
  }

  pause(): Promise<number> {
    this.#paused = true;
    return this.#port ? this.#silence({ pause: ++this.#ask }, this.#last) : Promise.resolve(0);
  }

  resume(): void {
    this.#paused = false;
    if (this.#port) this.#post('resume');
  }

  wake(): void {
    void this.#context.resume().catch(() => {}); // also where it runs: a suspension may be on its way
    if (!this.#begun) this.#restLater();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#rest);
    clearTimeout(this.#start);
    this.#context.onstatechange = null;
    this.#port = null;
    void this.#context.close().catch(() => {});
    for (const done of this.#asked.values()) done(this.#last);
  }

  /** A device that plays nothing is given time to sleep. What is pushed wakes it, and waits in the worklet until it has. */
  #restLater(): void {
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => {
      this.#begun = false;
      void this.#context.suspend().catch(() => {});
    }, restsAfter);
  }

  #silence(message: { cut: number } | { pause: number }, last: number): Promise<number> {
    const id = this.#ask;
    this.#post(message);
    return new Promise((done) => {
      const within = this.#context.state === 'running' ? answersWithin.running : answersWithin.otherwise;
      const late = setTimeout(() => this.#asked.get(id)?.(last), within);
      this.#asked.set(id, (playedMs) => {
        clearTimeout(late);
        this.#asked.delete(id);
        done(playedMs);
      });
    });
  }

  #post(message: ToPlayback): void {
    if (!this.#port) {
      if (this.#early.length < mostEarly) this.#early.push(message);
    } else if (typeof message === 'object' && 'samples' in message) this.#port.postMessage(message, [message.samples.buffer]);
    else this.#port.postMessage(message);
  }

  #told(message: FromPlayback): void {
    if ('silent' in message) {
      if (message.silent > this.#cut) this.#last = message.playedMs;
      return this.#asked.get(message.silent)?.(message.playedMs);
    }
    const { playedMs, level, dry, after } = message;
    // A report that was on its way at a cut says nothing any more: the answer to the cut does.
    if (after !== this.#cut) return;
    this.#last = playedMs;
    if (dry) this.#restLater();
    const cut = this.#cut;
    // What was rendered is heard when it has gone through the output.
    setTimeout(() => {
      if (cut !== this.#cut || this.#closed) return;
      this.#events.onLevel(level);
      this.#events.onPlayed(playedMs);
    }, 1000 * (this.#context.outputLatency || this.#context.baseLatency || 0));
  }

  #tellBlocked(): void {
    const blocked = this.#begun && this.#context.state !== 'running';
    if (blocked === this.#blocked) return;
    this.#blocked = blocked;
    this.#events.onBlocked(blocked);
  }
}
