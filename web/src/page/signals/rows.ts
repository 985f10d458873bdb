import type { Row } from '../../state/timeline';
import type { Watch } from '../../state/watch';
import { flagOf } from './Flag';

/** Rows beyond the edges that are drawn as well, so that scrolling finds them there. */
const beyond = 4;

/** What a row needs of its surroundings. */
interface Around {
  selected: Row | null;
  /** The numbers of the first and the last signal of the selected one's episode. */
  episode: { correlation: string; first: number; last: number } | null;
}

/** One row on the page, which shows now this row of the timeline and now that. */
class RowView {
  readonly element = document.createElement('div');
  #watch: Watch;
  #time = cell('time');
  #from = cell('from');
  #type = cell('type');
  #summary = cell('summary');
  #times = cell('times');
  #flag = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  #use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  #row: Row | null = null;
  #shown = '';
  #index = -1;
  #top = -1;

  constructor(watch: Watch, id: string) {
    this.#watch = watch;
    this.element.className = 'signal';
    this.element.id = id;
    this.element.setAttribute('role', 'row');
    this.#flag.setAttribute('class', 'pennant');
    this.#flag.setAttribute('aria-hidden', 'true');
    this.#flag.append(this.#use);
    this.#from.append(this.#flag);
    this.element.append(this.#time, this.#from, this.#type, this.#summary, this.#times);
  }

  get row(): Row | null {
    return this.element.hidden ? null : this.#row;
  }

  hide(): void {
    if (!this.element.hidden) this.element.hidden = true;
  }

  show(row: Row, index: number, top: number, { selected, episode }: Around): void {
    const { entry, count } = row;
    if (this.element.hidden) this.element.hidden = false;
    if (top !== this.#top) this.element.style.transform = `translateY(${top}px)`;
    this.#top = top;
    if (index !== this.#index) this.element.setAttribute('aria-rowindex', String(index + 1));
    this.#index = index;
    const within = episode !== null && entry.number >= episode.first && entry.number <= episode.last;
    const member = within && entry.correlation === episode.correlation;
    const place = !within ? '' : `${member ? 'in' : 'by'}${entry.number === episode.first ? ' first' : ''}${row.last >= episode.last ? ' last' : ''}`;
    const origin = this.#watch.originOf(entry);
    const key = `${entry.number}/${count}/${row === selected}/${place}/${origin.key}/${origin.name}`;
    if (key === this.#shown) return;
    this.#shown = key;
    const { dataset } = this.element;
    if (row !== this.#row) {
      this.#row = row;
      text(this.#time, timeOfDay(entry.at));
      text(this.#type, entry.type);
      dataset.kind = entry.kind;
    }
    this.#flag.setAttribute('data-identity', origin.identity);
    this.#use.setAttribute('href', flagOf(origin.identity));
    this.#from.setAttribute('aria-label', origin.name);
    this.#from.title = origin.name;
    text(this.#summary, row.summary);
    text(this.#times, count > 1 ? `×${count}` : '');
    dataset.episode = place;
    this.element.setAttribute('aria-selected', String(row === selected));
  }
}

function cell(name: string): HTMLElement {
  const element = document.createElement('span');
  element.className = name;
  element.setAttribute('role', 'gridcell');
  element.append('');
  return element;
}

/** Into the text node that is there, which is cheaper than another one. */
function text(element: HTMLElement, words: string): void {
  element.firstChild!.nodeValue = words;
}

const two = (n: number): string => String(n).padStart(2, '0');

/** 14:03:19.288 */
export function timeOfDay(at: number): string {
  const d = new Date(at);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, '0')}`;
}

/**
 * Draws the rows of the timeline that are in sight into elements that it keeps. It follows the newest unless the timeline is held, and holds it where
 * somebody scrolls away from there.
 */
export class SignalRows {
  #watch: Watch;
  #root: HTMLElement;
  #all: HTMLElement;
  #pool: RowView[] = [];
  #rowHeight: number;
  #onOpen: () => void;
  #height = 0; // of what is in sight, in px
  #drawnHeight = -1;
  #drawn = -1;
  #top = 0;
  #gone = 0;
  #undo = new AbortController();
  #resize: ResizeObserver | null = null;

  /** onOpen is called when a row was pressed, which then is selected. rowHeight is in px. */
  constructor(root: HTMLElement, watch: Watch, rowHeight: number, onOpen: () => void) {
    this.#onOpen = onOpen;
    this.#watch = watch;
    this.#root = root;
    this.#rowHeight = rowHeight;
    this.#gone = watch.timeline.gone;
    this.#all = document.createElement('div');
    this.#all.className = 'all';
    this.#all.setAttribute('role', 'rowgroup');
    root.append(this.#all);
    const { signal } = this.#undo;
    root.addEventListener('scroll', () => this.#onScroll(), { signal, passive: true });
    root.addEventListener('wheel', ({ deltaY }) => deltaY < 0 && this.#root.scrollTop > 0 && this.#stand(), { signal, passive: true });
    root.addEventListener('click', ({ target }) => this.#onClick(target as Element), { signal });
    if (typeof ResizeObserver === 'function') {
      this.#resize = new ResizeObserver(([change]) => this.resize(change!.contentRect.height));
      this.#resize.observe(root);
    }
  }

  /** How many rows are in sight as a whole. */
  get page(): number {
    return Math.max(1, Math.floor(this.#height / this.#rowHeight) - 1);
  }

  resize(height: number): void {
    this.#height = height;
    this.#drawn = -1;
    this.draw();
    const at = this.#watch.timeline.indexOf(this.#watch.timeline.selected);
    if (at >= 0) this.reveal(at); // what somebody looks at stays in sight
  }

  close(): void {
    this.#undo.abort();
    this.#resize?.disconnect();
    this.#all.remove();
  }

  draw(): void {
    const { timeline } = this.#watch;
    if (this.#height === 0) return;
    const { length } = timeline;
    const whole = length * this.#rowHeight;
    const moved = (timeline.gone - this.#gone) * this.#rowHeight;
    this.#gone = timeline.gone;
    if (timeline.version === this.#drawn) return;
    this.#drawn = timeline.version;
    if (whole !== this.#drawnHeight) {
      this.#all.style.height = `${whole}px`;
      this.#root.setAttribute('aria-rowcount', String(length));
      this.#drawnHeight = whole;
    }
    this.#scroll(timeline.hold ? this.#top - moved : whole);
    this.#fill(timeline.length);
  }

  /** Brings a row into sight. */
  reveal(index: number): void {
    const top = index * this.#rowHeight;
    if (top < this.#top) this.#scroll(top);
    else if (top + this.#rowHeight > this.#top + this.#height) this.#scroll(top + this.#rowHeight - this.#height);
    this.#drawn = -1;
    this.draw();
  }

  #fill(length: number): void {
    const { timeline } = this.#watch;
    const around = this.#around();
    const first = Math.max(0, Math.floor(this.#top / this.#rowHeight) - beyond);
    const end = Math.min(length, Math.ceil((this.#top + this.#height) / this.#rowHeight) + beyond);
    const size = Math.ceil(this.#height / this.#rowHeight) + 2 * beyond + 1;
    while (this.#pool.length < size) {
      const view = new RowView(this.#watch, `signal-${this.#pool.length}`);
      this.#pool.push(view);
      this.#all.append(view.element);
    }
    const used = new Set<RowView>();
    for (let i = first; i < end; i++) {
      // A row stays in its element for as long as it is drawn, also when rows before it go.
      const view = this.#pool[(i + timeline.gone) % this.#pool.length]!;
      used.add(view);
      view.show(timeline.row(i)!, i, i * this.#rowHeight, around);
    }
    let active = '';
    for (const view of this.#pool) {
      if (!used.has(view)) view.hide();
      else if (view.row === around.selected) active = view.element.id;
    }
    if (active === '') this.#root.removeAttribute('aria-activedescendant');
    else if (this.#root.getAttribute('aria-activedescendant') !== active) this.#root.setAttribute('aria-activedescendant', active);
  }

  #around(): Around {
    const { selected } = this.#watch.timeline;
    const correlation = selected?.entry.correlation ?? '';
    const members = correlation === '' ? [] : this.#watch.episode(correlation);
    if (members.length < 2) return { selected, episode: null };
    return { selected, episode: { correlation, first: members[0]!.number, last: members.at(-1)!.number } };
  }

  /** Without asking the browser where it is, which would have it lay out everything first. */
  #scroll(top: number): void {
    const end = Math.max(0, this.#drawnHeight - this.#height);
    const to = Math.min(end, Math.max(0, top));
    if (to === this.#top) return;
    this.#top = to;
    this.#root.scrollTop = to;
  }

  #onScroll(): void {
    const { timeline } = this.#watch;
    const { scrollTop } = this.#root;
    if (Math.abs(scrollTop - this.#top) <= 1) return; // our own, which the browser may round
    const atEnd = scrollTop + this.#height >= timeline.length * this.#rowHeight - this.#rowHeight / 2;
    if (!timeline.hold && !atEnd) this.#stand();
    else if (timeline.hold === 'scrolled' && atEnd && scrollTop > this.#top) timeline.follow();
    this.#top = scrollTop;
    this.#drawn = -1;
    this.#watch.recount();
  }

  #stand(): void {
    if (this.#watch.timeline.hold) return;
    this.#watch.timeline.stand('scrolled');
    this.#watch.recount();
  }

  #onClick(target: Element): void {
    const element = target.closest('.signal');
    const row = this.#pool.find((view) => view.element === element)?.row;
    if (!row) return;
    this.#watch.select(row);
    this.#onOpen();
  }
}
