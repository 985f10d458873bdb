import type { Timers } from '../client/line';
import { isOpen, type Approval } from './approvals';

/** A question that nobody answers in time is a no, also where the gateway's word of it does not come. */
export class Deadlines {
  #timers: Timers;
  #late: (id: string) => void;
  #running = new Map<string, unknown>(); // the timers of the open questions, by their ids

  constructor(timers: Timers, late: (id: string) => void) {
    this.#timers = timers;
    this.#late = late;
  }

  /** Takes all questions that there are: those that are not open any more have no deadline. */
  watch(approvals: readonly Approval[]): void {
    const open = approvals.filter(isOpen);
    for (const [id, timer] of this.#running) {
      if (open.some((a) => a.id === id)) continue;
      this.#timers.clear(timer);
      this.#running.delete(id);
    }
    for (const { id, until } of open) {
      if (this.#running.has(id)) continue;
      this.#running.set(id, this.#timers.set(() => this.#late(id), until - this.#timers.now()));
    }
  }
}
