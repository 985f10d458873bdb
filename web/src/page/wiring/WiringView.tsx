import { useSignal, type Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import '../../style/signals.css';
import '../../style/wiring.css';
import { askRun, askWiring, readRun, readWiring, switchRun, type Run, type Wiring } from '../../client/run';
import { systemTimers } from '../../client/line';
import type { App } from '../../state/app';
import { boardOf } from '../../state/board';
import { Outcome } from '../../state/outcome';
import { plain } from '../../state/plain';
import { timeOfDay } from '../signals/rows';
import { FlagSprite } from '../signals/Flag';
import { watchingOf } from '../signals/watching';
import { Icon } from '../Icon';
import { narrow } from '../wide';
import { BoardCanvas } from './BoardCanvas';
import { OutcomePanel } from './OutcomePanel';
import { WayDetail } from './WayDetail';
import { WayTable } from './WayTable';

/** How often the gateway is asked how the run goes, in ms. */
const between = 1000;

/** What is known of the run, and how many signals a second passed each wire of late. */
export interface Running {
  run: Run | null;
  /** By wire. */
  passing: ReadonlyMap<string, number>;
  words: string;
}

/** What signals set off: from sources by their types through filters to choreographies. It is drawn, and not edited: wiring.json is where it is written. */
export function WiringView({ app }: { app: App }): JSX.Element {
  const { watch } = watchingOf(app);
  const wiring = useSignal<Wiring | null>(null);
  const running = useSignal<Running>({ run: null, passing: new Map(), words: '' });
  const chosen = useSignal('');
  const listed = useSignal<boolean | null>(null);
  useEffect(() => watch.begin(), [watch]);
  useEffect(() => followRun(app, wiring, running), [app]);
  const outcome = useMemo(() => new Outcome({ token: () => app.token, timers: systemTimers }), [app]);
  useEffect(() => whileSeen(outcome), [outcome]);
  const { run, passing, words } = running.value;
  const board = useMemo(() => wiring.value && boardOf(wiring.value, run), [wiring.value, run]);
  const asList = listed.value ?? narrow.value;
  const way = board?.ways.find((w) => w.id === chosen.value) ?? null;
  const close = (): void => {
    const from = document.querySelector<HTMLElement>(`[data-way="${CSS.escape(chosen.value)}"]`);
    chosen.value = '';
    from?.focus();
  };
  return (
    <main
      class="wiring"
      data-detail={way ? 'open' : undefined}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || event.defaultPrevented || !way) return;
        event.preventDefault();
        close();
      }}
    >
      <h1 class="unseen">Wiring</h1>
      <FlagSprite />
      <section class="board" aria-label="What is wired">
        <Head app={app} running={running} />
        <div role="alert">{run && run.mistakes.length > 0 && <Mistakes run={run} />}</div>
        {words !== '' && (
          <p class="trouble" role="alert">
            {plain(words)}
          </p>
        )}
        {board && (board.ways.length === 0 ? <p class="nothing">Nothing is wired. Every signal is kept in the log; what it sets off is said by a wiring.json (--wiring), or by PUT /api/wiring.</p> : asList ? <WayTable watch={watch} board={board} chosen={chosen} /> : <BoardCanvas watch={watch} board={board} passing={passing} chosen={chosen} />)}
        {run?.running && <OutcomePanel outcome={outcome} />}
        <footer class="foot">
          <span>{asList ? 'Each wire with how many signals came to it and how many passed.' : 'A line is as thick as its signals per second. After a filter it carries only what passed.'}</span>
          <button type="button" class="button quiet" id="as-list" aria-pressed={asList} onClick={() => (listed.value = !asList)}>
            {asList ? 'Show as board' : 'Show as list'}
          </button>
        </footer>
      </section>
      {way && board && (
        <aside id="way" class="detail" aria-label="The selected wire">
          <WayDetail watch={watch} board={board} way={way} onClose={close} />
        </aside>
      )}
    </main>
  );
}

function Head({ app, running }: { app: App; running: Signal<Running> }): JSX.Element {
  const { run } = running.value;
  const flip = async (): Promise<void> => {
    const answer = await switchRun({ token: () => app.token }, !run?.running);
    const next = answer.ok ? readRun(answer.value) : null;
    running.value = { ...running.peek(), ...(next && { run: next }), words: answer.ok ? '' : answer.words };
  };
  return (
    <header class="head">
      <p>
        <strong>wiring.json</strong>
        {run && run.since > 0 && ` in force since ${timeOfDay(run.since).slice(0, 8)}`}
      </p>
      {run && (
        <>
          <p class="how" id="run-state">
            {run.running ? `run mode on, ${run.count.toLocaleString('en')} signals reached something` : 'run mode off'}
            {run.dropped > 0 && `, ${run.dropped.toLocaleString('en')} dropped`}
          </p>
          <button type="button" class="button" id="run" aria-pressed={run.running} onClick={() => void flip()}>
            {run.running ? 'Stop run mode' : 'Start run mode'}
          </button>
        </>
      )}
    </header>
  );
}

function Mistakes({ run }: { run: Run }): JSX.Element {
  const [first, ...more] = run.mistakes;
  return (
    <div class="banner" id="wiring-banner" data-tone="bad">
      <Icon name="warning" />
      <div class="mistakes">
        <p>
          <strong>wiring.json has {run.mistakes.length === 1 ? 'an error' : `${run.mistakes.length} errors`}.</strong>{' '}
          {run.since > 0 ? `The wiring of ${timeOfDay(run.since).slice(0, 8)} stays in force.` : 'What was in force stays.'}
        </p>
        <code>{plain(first!)}</code>
        {more.length > 0 && (
          <details>
            <summary>{more.length} more</summary>
            {more.map((mistake) => (
              <code key={mistake}>{plain(mistake)}</code>
            ))}
          </details>
        )}
      </div>
    </div>
  );
}

/** Asks how the run goes, again and again while it can be seen, and for the wiring whenever another one is in force. */
function followRun(app: App, wiring: Signal<Wiring | null>, running: Signal<Running>): () => void {
  const asker = { token: () => app.token };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;
  let read = -1; // since when the wiring that was read is in force
  let at = 0;
  const look = async (): Promise<void> => {
    if (document.visibilityState !== 'hidden') await once();
    if (!over) timer = setTimeout(() => void look(), between);
  };
  const once = async (): Promise<void> => {
    const answer = await askRun(asker);
    if (over) return;
    const run = answer.ok ? readRun(answer.value) : null;
    if (!run) {
      running.value = { ...running.peek(), words: answer.ok ? 'The gateway says nothing that can be read.' : answer.words };
      return;
    }
    const now = performance.now();
    running.value = { run, passing: passingOf(running.peek().run, run, now - at), words: '' };
    at = now;
    if (run.since === read && wiring.peek()) return;
    const text = await askWiring(asker);
    if (over || !text.ok) return;
    read = run.since;
    wiring.value = readWiring(text.value);
  };
  void look();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

/** Follows what comes out while the page can be seen: a browser has few connections for all pages of a gateway. */
function whileSeen(outcome: Outcome): () => void {
  const look = (): void => (document.visibilityState === 'hidden' ? outcome.stop() : outcome.start());
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    document.removeEventListener('visibilitychange', look);
    outcome.stop();
  };
}

function passingOf(before: Run | null, now: Run, ms: number): ReadonlyMap<string, number> {
  const passing = new Map<string, number>();
  for (const [id, { passed }] of now.wires) {
    const gained = passed - (before?.wires.get(id)?.passed ?? passed);
    passing.set(id, ms > 0 && gained > 0 ? gained / (ms / 1000) : 0);
  }
  return passing;
}
