/** The level ring shows the last 2.4 s in 72 ticks. */
export const ticks = 72;
export const tickMs = 2400 / ticks;

/** The levels of the last 2.4 s, one for each tick of the ring. */
export class LevelTrace {
  #values = new Float32Array(ticks);
  #tick = 0; // the number of the newest tick since the trace began

  clear(): void {
    this.#values.fill(0);
  }

  /** Of several levels within one tick the loudest counts, so that a short sound is not lost. */
  push(level: number, at: number): void {
    const before = this.#tick;
    this.#move(at);
    const place = this.#tick % ticks;
    this.#values[place] = this.#tick === before ? Math.max(this.#values[place]!, level) : level;
  }

  /** The level of a tick by its age, 0 being the newest. */
  at(age: number): number {
    return this.#values[(((this.#tick - age) % ticks) + ticks) % ticks]!;
  }

  /** Ages the trace up to a time, as silence. */
  #move(at: number): void {
    const tick = Math.floor(at / tickMs);
    const steps = Math.min(ticks, tick - this.#tick);
    for (let i = 1; i <= steps; i++) this.#values[(tick - steps + i) % ticks] = 0;
    if (tick > this.#tick) this.#tick = tick;
  }
}
