import { level, pcm16 } from './pcm';
import { Resampler } from './resampler';

/** What the gateway takes. */
export const gatewayRate = 16_000;

/** 20 ms: short enough that the first append follows the press at once, long enough that fifty a second are no load. */
export const chunkSamples = gatewayRate / 50;

export interface Chunk {
  pcm: Uint8Array<ArrayBuffer>;
  level: number;
}

/** Makes chunks for the gateway of what a microphone gives. It runs in the worklet, but knows nothing of it. */
export class Chunker {
  #resampler: Resampler | null;
  #waiting = new Float32Array(chunkSamples);
  #filled = 0;

  constructor(rate: number) {
    this.#resampler = rate === gatewayRate ? null : new Resampler(rate, gatewayRate);
  }

  push(samples: Float32Array, emit: (chunk: Chunk) => void): void {
    this.#collect(this.#resampler ? this.#resampler.push(samples) : samples, emit);
  }

  /** Emits everything that came in so far, the last chunk shorter than the others. */
  flush(emit: (chunk: Chunk) => void): void {
    if (this.#resampler) this.#collect(this.#resampler.flush(), emit);
    if (this.#filled > 0) this.#emit(emit);
  }

  #collect(samples: Float32Array, emit: (chunk: Chunk) => void): void {
    for (let at = 0; at < samples.length; ) {
      const piece = samples.subarray(at, at + chunkSamples - this.#filled);
      this.#waiting.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
      if (this.#filled === chunkSamples) this.#emit(emit);
    }
  }

  #emit(emit: (chunk: Chunk) => void): void {
    const samples = this.#waiting.subarray(0, this.#filled);
    this.#filled = 0;
    emit({ pcm: pcm16(samples), level: level(samples) });
  }
}
