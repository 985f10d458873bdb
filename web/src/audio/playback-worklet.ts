import { level } from './pcm';
import { Playback, soundRate } from './playback';

// The scope of a worklet, which TypeScript's own libraries leave out.
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

export const playbackName = 'vela-playback';

/**
 * From the page: sound, and where in the answer it lies, in samples; silence at once, for good or until it is to go on, with a number that comes
 * back.
 */
export type ToPlayback = { samples: Float32Array<ArrayBuffer>; at: number } | { cut: number } | { pause: number } | 'resume';
/** playedMs is where in the answer the sound ends that was rendered; dry says that nothing is left; after is the number of the last cut. */
export type FromPlayback = { playedMs: number; dry: boolean; level: number; after: number } | { silent: number; playedMs: number };

/** Thirty times a second, which is what the level ring draws. */
const reportFrames = Math.round(sampleRate / 30);

class Output extends AudioWorkletProcessor {
  #playback = new Playback(sampleRate);
  #heard = new Float32Array(reportFrames + 128);
  #filled = 0;
  #cut = 0;

  constructor() {
    super();
    this.port.onmessage = (event: MessageEvent<ToPlayback>) => {
      const message = event.data;
      if (message === 'resume') this.#playback.resume();
      else if ('samples' in message) this.#playback.push(message.samples, message.at);
      else if ('cut' in message) this.#silent((this.#cut = message.cut), this.#playback.cut());
      else this.#silent(message.pause, this.#playback.pause());
    };
  }

  process(_: Float32Array[][], outputs: Float32Array[][]): boolean {
    const out = outputs[0]![0]!;
    const still = this.#playback.dry || this.#playback.paused;
    this.#playback.render(out);
    if (still) return true;
    const piece = out.subarray(0, this.#heard.length - this.#filled);
    this.#heard.set(piece, this.#filled);
    this.#filled += piece.length;
    if (this.#playback.dry || this.#filled >= reportFrames) this.#report();
    return true;
  }

  #report(): void {
    const loudness = level(this.#heard.subarray(0, this.#filled));
    this.#filled = 0;
    this.#post({ playedMs: toMs(this.#playback.played), dry: this.#playback.dry, level: loudness, after: this.#cut });
  }

  #silent(silent: number, played: number): void {
    this.#filled = 0;
    this.#post({ silent, playedMs: toMs(played) });
  }

  #post(message: FromPlayback): void {
    this.port.postMessage(message);
  }
}

/** A millisecond that was not played whole was not played. What is left of one by rounding has been. */
function toMs(samples: number): number {
  return Math.floor((samples * 1000) / soundRate + 1e-6);
}

registerProcessor(playbackName, Output);
