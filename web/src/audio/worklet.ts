import { Chunker, type Chunk } from './chunker';

// The scope of a worklet, which TypeScript's own libraries leave out.
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

export const processorName = 'vela-capture';

/** From the page: an empty message with a number asks for everything captured so far, and for that number back after it. */
export type ToWorklet = { flush: number };
export type FromWorklet = { chunk: Chunk } | { flushed: number };

/** It runs for as long as the microphone is open, so that a press finds it running; what is not of a turn is dropped by the page. */
class Capture extends AudioWorkletProcessor {
  #chunker = new Chunker(sampleRate);
  #mono = new Float32Array(128);

  constructor() {
    super();
    this.port.onmessage = (event: MessageEvent<ToWorklet>) => {
      this.#chunker.flush(this.#post);
      this.port.postMessage({ flushed: event.data.flush } satisfies FromWorklet);
    };
  }

  process(inputs: Float32Array[][]): boolean {
    const channels = inputs[0];
    if (channels?.[0]) this.#chunker.push(this.#mix(channels), this.#post);
    return true;
  }

  #post = (chunk: Chunk): void => {
    this.port.postMessage({ chunk } satisfies FromWorklet, [chunk.pcm.buffer]);
  };

  /** Some devices give two channels even when one was asked for. */
  #mix(channels: Float32Array[]): Float32Array {
    const first = channels[0]!;
    if (channels.length === 1) return first;
    if (this.#mono.length !== first.length) this.#mono = new Float32Array(first.length);
    for (let i = 0; i < first.length; i++) {
      let sum = 0;
      for (const channel of channels) sum += channel[i]!;
      this.#mono[i] = sum / channels.length;
    }
    return this.#mono;
  }
}

registerProcessor(processorName, Capture);
