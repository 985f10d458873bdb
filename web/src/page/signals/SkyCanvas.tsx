import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { others, spans, type Lane, type Span } from '../../state/sky';
import type { Origin } from '../../state/origin';
import type { Watch } from '../../state/watch';
import { Choice } from '../Choice';
import { Flag } from './Flag';

/** More lanes than this would leave the list no room. */
const mostLanes = 6;
const laneHeight = 26;

const spanWords: Record<Span, string> = { 12000: '12 s', 60000: '60 s', 600000: '10 min' };

/** The last seconds or minutes, in a lane for each source. What is selected and belongs together is linked. */
export function SkyCanvas({ watch }: { watch: Watch }): JSX.Element | null {
  const span = useSignal<Span>(spans[0]);
  const canvas = useRef<HTMLCanvasElement>(null);
  void watch.counts.value; // which lanes there are is looked at as often as rates are
  const lanes = lanesOf(watch, span.value);
  const drawn = useRef(lanes);
  drawn.current = lanes;
  const names = lanes.map(({ origin }) => origin.key).join('\n');
  useEffect(() => {
    if (!canvas.current) return;
    const painter = new Painter(canvas.current, watch, () => drawn.current, () => span.peek());
    const undo = watch.onDraw(() => painter.draw());
    return () => {
      undo();
      painter.close();
    };
  }, [watch, names === '']);
  useEffect(() => watch.redraw(), [watch, names, span.value]);
  if (lanes.length === 0) return null;
  return (
    <section class="sky" aria-label={`The last ${spanWords[span.value]}`}>
      <ul>
        {lanes.map(({ origin }) => (
          <li key={origin.key} data-identity={origin.identity}>
            <Flag identity={origin.identity} />
            <bdi>{origin.name}</bdi>
          </li>
        ))}
      </ul>
      <canvas ref={canvas} style={{ height: `${lanes.length * laneHeight}px` }} aria-hidden="true" />
      <div class="axis">
        <span aria-hidden="true">{spanWords[span.value]} ago</span>
        <Choice
          id="span"
          label="How far back"
          options={spans.map((s) => ({ value: String(s), word: spanWords[s] }))}
          value={String(span.value)}
          onChange={(s) => (span.value = Number(s) as Span)}
        />
        <span aria-hidden="true">now</span>
      </div>
    </section>
  );
}

interface Shown {
  lane: Lane | null;
  origin: Origin;
}

/** A lane stays for so long after its last signal, in ms, so that not all of them come and go. */
const linger = 60_000;

/**
 * Sources that are connected have a lane also while they are silent; the rest has one as long as something of it is there. Where they are too
 * many, those that were heard last.
 */
function lanesOf(watch: Watch, span: Span): Shown[] {
  const now = watch.now();
  const lanes = new Map(watch.sky.lanes(now).map((lane) => [lane.key, lane]));
  const shown: Shown[] = [];
  for (const source of watch.known.value.values()) {
    const lane = lanes.get(source.id) ?? null;
    lanes.delete(source.id);
    if (lane || source.state === 'connected') shown.push({ lane, origin: watch.originOf({ sourceId: source.id, source: source.id, type: '' }) });
  }
  for (const lane of lanes.values()) {
    const origin = lane.key === others ? { key: others, name: 'Others', identity: 'posted' } : watch.originByKey(lane.key);
    shown.push({ lane, origin });
  }
  const since = now - Math.max(span, linger);
  const recent = shown.filter(({ lane, origin }) => (lane !== null && lane.last >= since) || watch.known.value.get(origin.key)?.state === 'connected');
  const last = recent.map(({ lane }) => lane?.last ?? 0).sort((a, b) => b - a)[mostLanes - 1] ?? 0;
  return recent.filter(({ lane }) => (lane?.last ?? 0) >= last).slice(0, mostLanes);
}

class Painter {
  #canvas: HTMLCanvasElement;
  #watch: Watch;
  #lanes: () => readonly Shown[];
  #span: () => Span;
  #colours = new Map<string, string>();
  #looked = -Infinity; // when the colours were read, in ms
  #drawn = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dark = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null;
  #relook = (): void => {
    this.#looked = -Infinity;
    this.#drawn = -Infinity;
    this.#watch.redraw();
  };
  #calm = typeof matchMedia === 'function' && matchMedia('(prefers-reduced-motion: reduce)').matches;

  constructor(canvas: HTMLCanvasElement, watch: Watch, lanes: () => readonly Shown[], span: () => Span) {
    this.#canvas = canvas;
    this.#watch = watch;
    this.#lanes = lanes;
    this.#span = span;
    this.#dark?.addEventListener('change', this.#relook);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#dark?.removeEventListener('change', this.#relook);
  }

  draw(): void {
    const now = this.#watch.now();
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const span = this.#span();
    // About once for each pixel that it moves on.
    const between = this.#calm ? 250 : Math.min(1000, Math.max(33, span / Math.max(1, width)));
    const early = between - (now - this.#drawn);
    clearTimeout(this.#timer);
    if (early > 0 && early <= between) {
      this.#timer = setTimeout(() => this.#watch.redraw(), early);
      return;
    }
    this.#drawn = now;
    const pen = this.#canvas.getContext('2d');
    if (!pen || width === 0) return;
    this.#fit(pen, width, height);
    if (now - this.#looked > 1000) this.#look(now);
    pen.clearRect(0, 0, width, height);
    let moving = false;
    this.#lanes().forEach(({ lane, origin }, i) => {
      const middle = (i + 0.5) * laneHeight;
      pen.fillStyle = this.#colours.get('') ?? '#888';
      pen.fillRect(0, Math.round(middle), width, 1);
      if (lane && this.#drawLane(pen, lane, this.#colours.get(origin.identity) ?? '#888', middle, width, span, now)) moving = true;
    });
    this.#drawEpisode(pen, width, span, now);
    if (moving) this.#timer = setTimeout(() => this.#watch.redraw(), between);
  }

  #drawLane(pen: CanvasRenderingContext2D, lane: Lane, colour: string, middle: number, width: number, span: Span, now: number): boolean {
    let any = false;
    const column = width / 300;
    lane.each(span, now, (at, count, failed) => {
      any = true;
      const x = width * (1 - (now - at) / span);
      pen.fillStyle = failed ? this.#colours.get('bad')! : colour;
      if (failed) {
        pen.beginPath();
        pen.moveTo(x, middle - 6);
        pen.lineTo(x + 6, middle);
        pen.lineTo(x, middle + 6);
        pen.lineTo(x - 6, middle);
        pen.fill();
      } else if (count > 3) {
        const tall = Math.min(laneHeight - 4, 5 + 2.2 * Math.log2(count));
        pen.fillRect(x, middle - tall / 2, Math.max(1.5, column - 0.5), tall);
      } else {
        for (let k = 0; k < count; k++) pen.fillRect(x - 1, middle - 1 + scatter(at + k * 7919), 3, 3);
      }
    });
    return any;
  }

  #drawEpisode(pen: CanvasRenderingContext2D, width: number, span: Span, now: number): void {
    const { selected } = this.#watch.timeline;
    if (!selected) return;
    const lanes = this.#lanes();
    const place = (entry: typeof selected.entry): { x: number; y: number } | null => {
      const i = lanes.findIndex(({ origin }) => origin.key === this.#watch.originOf(entry).key);
      const x = width * (1 - (now - entry.at) / span);
      return i < 0 || x < 0 ? null : { x, y: (i + 0.5) * laneHeight };
    };
    const members = selected.entry.correlation === '' ? [selected.entry] : this.#watch.episode(selected.entry.correlation);
    const points = members.slice(-200).flatMap((entry) => place(entry) ?? []);
    pen.strokeStyle = this.#colours.get('ink') ?? '#888';
    pen.fillStyle = this.#colours.get('ground') ?? '#888';
    pen.lineWidth = 1.25;
    pen.beginPath();
    points.forEach(({ x, y }, i) => (i === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y)));
    pen.stroke();
    for (const { x, y } of points) ring(pen, x, y, 3);
    const here = place(selected.entry);
    if (!here) return;
    pen.fillStyle = this.#colours.get('ink') ?? '#888';
    ring(pen, here.x, here.y, 4.5);
  }

  #fit(pen: CanvasRenderingContext2D, width: number, height: number): void {
    const scale = Math.min(2, window.devicePixelRatio || 1);
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.#canvas.width !== w || this.#canvas.height !== h) {
      this.#canvas.width = w;
      this.#canvas.height = h;
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
  }

  /** The colours change with the theme, and only the style knows them. */
  #look(now: number): void {
    this.#looked = now;
    const of = (element: Element): string => getComputedStyle(element).color;
    const section = this.#canvas.parentElement!;
    for (const flag of section.querySelectorAll('svg[data-identity]')) this.#colours.set(flag.getAttribute('data-identity')!, of(flag));
    const style = getComputedStyle(section);
    this.#colours.set('ink', style.color);
    this.#colours.set('ground', style.backgroundColor);
    this.#colours.set('', style.borderBottomColor);
    this.#colours.set('bad', style.outlineColor); // sky.css gives it the colour of what went wrong
  }
}

function ring(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fill();
  pen.stroke();
}

/** Somewhere about the middle, and always there for the same signal. */
function scatter(seed: number): number {
  const mixed = Math.imul(Math.floor(seed) ^ (Math.floor(seed) >>> 7), 0x9e3779b1) >>> 0;
  return (mixed / 2 ** 32 - 0.5) * 14;
}
