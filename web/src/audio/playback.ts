import { Resampler } from './resampler';

/** The rate of the sound that the gateway is asked for. */
export const soundRate = 24_000;

/** The gateway sends at most 0.4 s ahead of what was acknowledged; what is more than this is none of its making, and is not taken. */
const mostSeconds = 2;

/** Frames of the fade at a cut or a pause: one quantum of Web Audio, 2.7 ms at 48 kHz. */
export const fadeFrames = 128;

/** Sound at the rate of the output, and where in the answer it begins, in samples of soundRate. */
interface Piece {
  from: number;
  samples: Float32Array;
}

/**
 * What waits to be played, in order, and how much of it has been. It runs in the worklet, but knows nothing of it.
 *
 * Positions are those of the answer, in samples of soundRate. What is missing is silence, and moves no position.
 */
export class Playback {
  #rate: number;
  #resampler: Resampler | null;
  #pieces: Piece[] = [];
  #offset = 0; // into the first piece
  #waiting = 0; // frames
  #next: number | null = null; // where the sound that was pushed last ends
  #base = 0; // the position of the first input of the resampler
  #made = 0; // frames that came out of it since
  #inside = false; // whether it still has frames
  #played = 0;
  #fade: Float32Array | null = null;
  #paused = false;
  #faded = 0; // frames at the front that a pause let fade, and that rise again with resume()
  #risen = 0; // of them

  constructor(rate: number) {
    this.#rate = rate;
    this.#resampler = rate === soundRate ? null : new Resampler(soundRate, rate);
  }

  /** Where the sound ends that has been played. */
  get played(): number {
    return this.#played;
  }

  /** Whether there is nothing to play. */
  get dry(): boolean {
    return this.#pieces.length === 0 && !this.#inside;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Takes sound that lies at a position, and says whether there was room for it. */
  push(samples: Float32Array, at: number): boolean {
    if (this.#waiting + (samples.length * this.#rate) / soundRate > mostSeconds * this.#rate) return false;
    if (at !== this.#next) {
      this.#drain();
      this.#base = at;
      if (this.#next === null) this.#played = at;
    }
    this.#next = at + samples.length;
    if (!this.#resampler) this.#add({ from: at, samples });
    else {
      this.#inside = true;
      this.#resampled(this.#resampler.push(samples));
    }
    return true;
  }

  /** Fills a quantum, and says how many of its frames are sound of the answer. */
  render(out: Float32Array): number {
    let at = 0;
    if (this.#fade) {
      at = Math.min(out.length, this.#fade.length);
      out.set(this.#fade.subarray(0, at));
      this.#fade = null;
    }
    const filled = this.#paused ? at : this.#take(out, at);
    out.fill(0, filled);
    for (let i = at; i < filled && this.#risen < this.#faded; i++) out[i]! *= ++this.#risen / this.#faded;
    return filled - at;
  }

  /**
   * Falls silent, and keeps what waits for resume(). What fades meanwhile is no part of what has been played: it rises again later, and the
   * two add up to the sound as it came. Returns where the sound ends that has been played.
   */
  pause(): number {
    if (this.#paused) return this.#played;
    this.#paused = true;
    // In silence already: behind another fade, or before what faded last has risen.
    if (this.#fade || (this.#faded > 0 && this.#risen === 0)) return this.#played;
    const ahead = new Float32Array(fadeFrames);
    const from = this.#played;
    const length = this.#take(ahead, 0);
    this.#faded = length;
    this.#risen = 0;
    if (length > 0) {
      this.#putBack({ from, samples: ahead.subarray(0, length) });
      this.#fade = faded(ahead, length);
    }
    return this.#played;
  }

  /** Goes on where it was paused. */
  resume(): void {
    this.#paused = false;
    // A fade that was not even heard has nothing to rise from.
    if (this.#fade && this.#faded > 0) {
      this.#fade = null;
      this.#faded = 0;
    }
  }

  /** Forgets what waits, but for a fade of one quantum. Returns where the sound ends that has been played. */
  cut(): number {
    const played = this.#played;
    if (!this.dry && !this.#paused) {
      const ahead = new Float32Array(fadeFrames);
      this.#take(ahead, 0);
      this.#fade = faded(ahead, fadeFrames);
    }
    this.#drain();
    this.#pieces = [];
    this.#offset = this.#waiting = this.#faded = 0;
    this.#next = null;
    this.#played = 0;
    return played;
  }

  #take(out: Float32Array, from: number): number {
    let at = from;
    while (at < out.length) {
      const piece = this.#pieces[0];
      if (!piece) {
        if (!this.#drain()) break;
        continue;
      }
      const part = piece.samples.subarray(this.#offset, this.#offset + out.length - at);
      out.set(part, at);
      at += part.length;
      this.#offset += part.length;
      this.#waiting -= part.length;
      this.#played = piece.from + (this.#offset * soundRate) / this.#rate;
      if (this.#offset === piece.samples.length) {
        this.#pieces.shift();
        this.#offset = 0;
      }
    }
    return at;
  }

  /** Puts what was taken last in front of the rest again. */
  #putBack(piece: Piece): void {
    const rest = this.#pieces[0];
    if (rest) this.#pieces[0] = { from: rest.from + (this.#offset * soundRate) / this.#rate, samples: rest.samples.subarray(this.#offset) };
    this.#offset = 0;
    this.#pieces.unshift(piece);
    this.#waiting += piece.samples.length;
    this.#played = piece.from;
  }

  /** What the resampler keeps for want of what follows: nothing follows, or not in time. Says whether there was anything. */
  #drain(): boolean {
    if (!this.#resampler || !this.#inside) return false;
    this.#inside = false;
    this.#resampled(this.#resampler.flush());
    this.#base = this.#next ?? 0;
    this.#made = 0;
    return this.#pieces.length > 0;
  }

  #resampled(samples: Float32Array): void {
    this.#add({ from: this.#base + (this.#made * soundRate) / this.#rate, samples });
    this.#made += samples.length;
  }

  #add(piece: Piece): void {
    if (piece.samples.length === 0) return;
    this.#pieces.push(piece);
    this.#waiting += piece.samples.length;
  }
}

/** Some sound on its way to silence, over a length in frames. */
function faded(sound: Float32Array, length: number): Float32Array {
  return sound.map((sample, i) => sample * Math.max(0, 1 - (i + 1) / length));
}
