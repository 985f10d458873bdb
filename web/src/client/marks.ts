/**
 * The gateway keeps the last 4096 events of a session and 8 MiB of them, and who asks for more gets nothing. So no more than this is asked
 * for, which leaves room for what is said before anybody asks.
 */
const mostEvents = 1024;
const mostChars = 1 << 20;

/** What was counted when the session was idle. */
interface Mark {
  seq: number;
  events: number;
  chars: number;
}

/**
 * Where whoever comes without memory begins: at an event after which no turn was under way. The first mark is as far back as the gateway
 * surely has it, so that a page that is loaded again hears all of the turns that it showed; at the latest it is the beginning of the turn that runs.
 */
export class Marks {
  #marks: Mark[] = [];
  #events = 0;
  #chars = 0;

  /** The number of the event to begin after; null before there is any. */
  get first(): number | null {
    return this.#marks[0]?.seq ?? null;
  }

  /** Nothing before this one is of use any more. */
  restart(seq: number): void {
    this.#marks = [];
    this.add(seq);
  }

  add(seq: number): void {
    this.#marks.push({ seq, events: this.#events, chars: this.#chars });
    this.#forget();
  }

  /** An event of the session has come. */
  count(chars: number): void {
    this.#events++;
    this.#chars += chars;
    this.#forget();
  }

  #forget(): void {
    const far = ({ events, chars }: Mark): boolean => this.#events - events > mostEvents || this.#chars - chars > mostChars;
    while (this.#marks.length > 1 && far(this.#marks[0]!)) this.#marks.shift();
  }
}
