/** Stop-band attenuation in dB, and the transition band as a part of the lower rate. What aliases stays above 7.4 kHz of 16. */
const attenuation = 80;
const transition = 0.075;

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** The modified Bessel function of order zero, which the Kaiser window is made of. */
function bessel0(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/**
 * Changes the sample rate of a stream by any ratio, with a low-pass of 80 dB so that nothing above the new half rate folds back into speech.
 *
 * A polyphase windowed sinc: output n lies at input n·down/up, between two input samples in one of `up` places, and each place has its own
 * filter, computed once. The filter's delay is taken out, so output 0 lies at input 0, and flush() gives the rest: ceil(inputs·up/down)
 * samples in all, however the stream was cut into pieces.
 */
export class Resampler {
  #up: number;
  #down: number;
  #half: number; // input samples on each side of an output
  #phases: Float32Array[];
  #history: Float32Array; // the inputs that an output may still need, oldest first
  #filled = 0;
  #start = 0; // the position of history[0] in the stream
  #taken = 0; // inputs so far
  #made = 0; // outputs so far

  constructor(from: number, to: number) {
    const g = gcd(from, to);
    this.#up = to / g;
    this.#down = from / g;
    const lower = Math.min(from, to);
    const width = (transition * lower) / from; // in cycles per input sample
    const cutoff = (0.5 * lower) / from - width / 2;
    this.#half = Math.ceil((attenuation - 8) / (2.285 * 2 * Math.PI * width) / 2);
    this.#phases = phases(this.#up, this.#half, cutoff);
    this.#history = new Float32Array(this.#half * 2 + 4096);
    this.#reset();
  }

  push(input: Float32Array): Float32Array {
    this.#append(input);
    this.#taken += input.length;
    // An output needs `half` inputs after it.
    const ready = Math.floor(((this.#taken - this.#half) * this.#up) / this.#down);
    return this.#take(Math.max(this.#made, ready));
  }

  /** The samples that were still waiting for inputs after them. Then the stream begins anew. */
  flush(): Float32Array {
    const whole = Math.ceil((this.#taken * this.#up) / this.#down);
    this.#append(new Float32Array(this.#half + 1));
    const rest = this.#take(whole);
    this.#reset();
    return rest;
  }

  #reset(): void {
    this.#history.fill(0);
    this.#filled = this.#half; // silence before the first input
    this.#start = -this.#half;
    this.#taken = 0;
    this.#made = 0;
  }

  #append(input: Float32Array): void {
    if (this.#filled + input.length > this.#history.length) this.#forget(input.length);
    this.#history.set(input, this.#filled);
    this.#filled += input.length;
  }

  /** Drops what no output needs any more, and grows only when a caller pushes more at once than there was room for. */
  #forget(coming: number): void {
    const needed = Math.floor((this.#made * this.#down) / this.#up) - this.#half + 1 - this.#start;
    const drop = Math.max(0, Math.min(needed, this.#filled));
    const kept = this.#history.subarray(drop, this.#filled);
    if (kept.length + coming > this.#history.length) {
      const larger = new Float32Array((kept.length + coming) * 2);
      larger.set(kept);
      this.#history = larger;
    } else {
      this.#history.copyWithin(0, drop, this.#filled);
    }
    this.#filled -= drop;
    this.#start += drop;
  }

  #take(until: number): Float32Array {
    const out = new Float32Array(until - this.#made);
    for (let i = 0; i < out.length; i++, this.#made++) {
      const at = this.#made * this.#down;
      const before = Math.floor(at / this.#up);
      const filter = this.#phases[at % this.#up]!;
      const first = before - this.#half + 1 - this.#start;
      let sum = 0;
      for (let k = 0; k < filter.length; k++) sum += filter[k]! * this.#history[first + k]!;
      out[i] = sum;
    }
    return out;
  }
}

/** One filter for each place between two inputs; each sums to one, so that the places do not differ in loudness. */
function phases(up: number, half: number, cutoff: number): Float32Array[] {
  const beta = 0.1102 * (attenuation - 8.7);
  const scale = bessel0(beta);
  return Array.from({ length: up }, (_, phase) => {
    const filter = new Float32Array(half * 2);
    let sum = 0;
    for (let k = 0; k < filter.length; k++) {
      const t = k - half + 1 - phase / up; // from the output to input k
      const x = 2 * cutoff * t;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
      const window = bessel0(beta * Math.sqrt(Math.max(0, 1 - (t / half) ** 2))) / scale;
      filter[k] = sinc * window;
      sum += filter[k]!;
    }
    for (let k = 0; k < filter.length; k++) filter[k]! /= sum;
    return filter;
  });
}
