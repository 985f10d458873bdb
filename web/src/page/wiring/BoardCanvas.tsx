import { useSignal, type Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { linksOf, passingWords, thickness, type Board, type Way } from '../../state/board';
import { rateWords } from '../../state/meter';
import type { Origin } from '../../state/origin';
import { plain } from '../../state/plain';
import type { Watch } from '../../state/watch';
import { Flag } from '../signals/Flag';

const widths = [168, 168, 256, 196] as const;
const heads = ['Sources', 'Signal types', 'Filters', 'Choreographies'] as const;
const step = 72;
const top = 64;
const margin = 20;

/** How many filters have room in a capsule. */
const lines = 3;

/** Least room between two columns, so that the lines can be told apart. */
const least = 28;

interface Spot {
  x: number;
  y: number;
}

/** What is wired, as a drawing: every line as thick as what it carries. */
export function BoardCanvas({ watch, board, passing, chosen }: { watch: Watch; board: Board; passing: ReadonlyMap<string, number>; chosen: Signal<string> }): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const room = useSignal(0);
  void watch.counts.value; // the rates
  useEffect(() => {
    room.value = frame.current!.clientWidth;
    if (typeof ResizeObserver !== 'function') return;
    const resize = new ResizeObserver(([change]) => (room.value = Math.floor(change!.contentRect.width)));
    resize.observe(frame.current!);
    return () => resize.disconnect();
  }, []);
  const sources = sourcesOf(watch, board);
  const filtered = board.ways.filter((w) => w.filters.length > 0);
  const gap = Math.max(least, (room.value - 2 * margin - widths.reduce((a, b) => a + b, 0)) / 3);
  const xs = widths.map((_, i) => margin + widths.slice(0, i).reduce((a, b) => a + b, 0) + i * gap);
  const most = Math.max(sources.length, board.types.length, board.ways.length, board.goals.length);
  // Shorter columns are spread over the height of the longest.
  const y = (i: number, of: number): number => top + ((i + 0.5) * most * step) / Math.max(1, of);
  const place = <T,>(all: readonly T[], one: T): number => y(all.indexOf(one), all.length);
  const wayY = (way: Way): number => place(board.ways, way);
  const width = xs[3]! + widths[3] + margin;
  const height = top + most * step + margin;
  const selected = board.ways.find((w) => w.id === chosen.value);
  const dimmed = (type: string, way?: Way): string | undefined => (!selected || (way ? way === selected : type === selected.type) ? undefined : 'yes');
  const choose = (way: Way): void => void (chosen.value = chosen.value === way.id ? '' : way.id);
  return (
    <div class="canvas" ref={frame} tabIndex={0} role="group" aria-label="The board; the list says the same in words">
      <div class="sheet" style={{ width: `${width}px`, height: `${height}px` }}>
        {heads.map((head, i) => (
          <h2 key={head} style={{ left: `${xs[i]!}px` }}>
            {head}
          </h2>
        ))}
        <svg width={width} height={height} aria-hidden="true" focusable="false">
          {sources.flatMap((origin) =>
            board.types.map((type) => {
              const rate = watch.rateOf(type, origin.key);
              if (!feeds(board, origin.key, type) && rate === 0) return null;
              return (
                <path
                  key={`${origin.key} ${type}`}
                  data-identity={origin.identity}
                  data-dim={dimmed(type)}
                  stroke-width={thickness(rate)}
                  d={line({ x: xs[0]! + widths[0], y: place(sources, origin) }, { x: xs[1]!, y: place(board.types, type) })}
                />
              );
            }),
          )}
          {board.ways.map((way) => {
            const from = { x: xs[1]! + widths[1], y: place(board.types, way.type) };
            const goal = { x: xs[3]!, y: y(board.goals.findIndex((g) => g.id === way.to), board.goals.length) };
            const through = way.filters.length > 0;
            const stop = { x: through ? xs[2]! : xs[2]! + widths[2] / 2, y: wayY(way) };
            const go = { x: through ? xs[2]! + widths[2] : stop.x, y: stop.y };
            const before = thickness(watch.rateOf(way.type));
            const after = through ? thickness(passing.get(way.id) ?? 0) : before;
            return (
              <g key={way.id} data-dim={dimmed(way.type, way)} data-chosen={way === selected ? 'yes' : undefined}>
                <path stroke-width={before} d={line(from, stop)} />
                <path stroke-width={after} d={line(go, goal)} />
              </g>
            );
          })}
        </svg>
        {sources.map((origin, i) => (
          <div key={origin.key} class="node" style={at(xs[0]!, y(i, sources.length), widths[0])}>
            <Flag identity={origin.identity} />
            <span class="grow">
              <bdi>{plain(origin.name)}</bdi>
            </span>
            <span class="n">{stateOf(watch, origin.key)}</span>
          </div>
        ))}
        {board.types.map((type, i) => (
          <div key={type} class="node" data-chosen={selected?.type === type ? 'yes' : undefined} style={at(xs[1]!, y(i, board.types.length), widths[1])}>
            <code class="grow">{plain(type)}</code>
            <span class="n">{rateWords(watch.rateOf(type))}/s</span>
          </div>
        ))}
        {filtered.map((way) => (
          <button
            key={way.id}
            type="button"
            class="capsule"
            data-way={way.id}
            aria-pressed={way === selected}
            style={at(xs[2]!, wayY(way), widths[2])}
            onClick={() => choose(way)}
          >
            <span class="unseen">{plain(`${way.type} to ${way.to}: `)}</span>
            {linksOf(way, lines).map((link, i) => (
              <span key={i} class="link-line">
                <span class="grow">{plain(link.words)}</span> {link.count && <span class="n">{passingWords(link.count)}</span>}
              </span>
            ))}
          </button>
        ))}
        {board.goals.map((goal, i) => {
          const direct = goal.ways.find((w) => w.filters.length === 0) ?? goal.ways[0]!;
          return (
            <button
              key={goal.id}
              type="button"
              class="node goal"
              data-way={direct.id}
              data-chosen={selected?.to === goal.id ? 'yes' : undefined}
              aria-pressed={selected?.to === goal.id}
              style={at(xs[3]!, y(i, board.goals.length), widths[3])}
              onClick={() => choose(direct)}
            >
              <b>
                <bdi>{plain(goal.id)}</bdi>
                {goal.count && <span class="n">{goal.count.performed.toLocaleString('en')} performed</span>}
              </b>
              <span class="n">{goal.bindings.length > 0 ? `sets ${goal.bindings.map((b) => b.property).join(', ')}` : goal.choreography?.interrupts ? 'interrupts by correlationId' : `own type ${goal.choreography?.on ?? ''}`}</span>
            </button>
          );
        })}
      </div>
    </div>
  );
}

/** What has fed one of these types lately, what a wire says may feed it, and what is connected. */
function sourcesOf(watch: Watch, board: Board): Origin[] {
  const found = new Map<string, Origin>();
  const add = (key: string): void => {
    if (found.has(key) || found.size >= 12) return;
    const source = watch.known.value.get(key);
    found.set(key, source ? watch.originOf({ sourceId: key, source: key, type: '' }) : watch.originByKey(key));
  };
  for (const source of watch.known.value.values()) if (source.state !== 'unavailable') add(source.id);
  for (const way of board.ways) way.from?.forEach(({ source }) => add(source));
  for (const type of board.types) watch.originsOf(type).forEach(add);
  return [...found.values()];
}

/** Whether a wire says that the signals of a source count for a type. */
function feeds(board: Board, origin: string, type: string): boolean {
  return board.ways.some((w) => w.type === type && w.from?.some(({ source }) => source === origin) === true);
}

function stateOf(watch: Watch, key: string): string {
  const source = watch.known.value.get(key);
  if (source && source.state !== 'connected') return source.state === 'disconnected' ? 'off' : source.state;
  return `${rateWords(watch.pulse(key).rate)}/s`;
}

function at(x: number, middle: number, width: number): Record<'left' | 'top' | 'width', string> {
  return { left: `${x}px`, top: `${middle}px`, width: `${width}px` };
}

function line(a: Spot, b: Spot): string {
  const bend = (b.x - a.x) / 2;
  return `M${a.x} ${a.y}C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
}
