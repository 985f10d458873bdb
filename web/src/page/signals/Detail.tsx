import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { isObject } from '../../client/decode';
import { plain } from '../../state/plain';
import { wholeOf, type Entry, type Row } from '../../state/timeline';
import type { Watch } from '../../state/watch';
import { Copy } from '../Artifacts';
import { Icon } from '../Icon';
import { Flag } from './Flag';
import { Json } from './json';
import { timeOfDay } from './rows';

/** An episode can be as long as all that is kept. */
const mostShown = 100;

/** All there is to know of the signal that is selected, and what belongs with it. */
export function Detail({ watch, row, onClose }: { watch: Watch; row: Row; onClose(): void }): JSX.Element {
  const { entry, count } = row;
  const origin = watch.originOf(entry);
  const whole = useMemo(() => wholeOf(entry), [entry]);
  const metadata = isObject(whole?.metadata) ? whole.metadata : null;
  return (
    <>
      <header>
        <h2>
          <bdi>{plain(entry.type)}</bdi>
        </h2>
        <button type="button" class="button icon-only quiet" id="close-detail" aria-label="Close the signal" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div class="scroll" tabIndex={0} role="group" aria-label="The selected signal">
        <dl class="evidence">
          <dt>Source</dt>
          <dd class="who">
            <Flag identity={origin.identity} />
            <bdi>{plain(origin.name)}</bdi>
          </dd>
          {origin.name !== entry.source && (
            <>
              <dt>Producer</dt>
              <dd>{plain(entry.source)}</dd>
            </>
          )}
          <dt>Time</dt>
          <dd>{timeOfDay(entry.at)}</dd>
          <dt>id</dt>
          <dd>{plain(entry.id)}</dd>
          {entry.correlation !== '' && (
            <>
              <dt>correlationId</dt>
              <dd>{plain(entry.correlation)}</dd>
            </>
          )}
        </dl>
        {count > 1 && <Text watch={watch} row={row} />}
        <section>
          <h3>{count > 1 ? 'Payload of the first' : 'Payload'}</h3>
          <Json value={whole?.payload ?? null} />
        </section>
        {metadata && (
          <section>
            <h3>Metadata</h3>
            <Json value={metadata} />
          </section>
        )}
        <Episode watch={watch} row={row} />
      </div>
      <footer>
        {entry.correlation !== '' && <OnlyEpisode watch={watch} entry={entry} />}
        <Copy key={entry.number} text={() => JSON.stringify(whole, null, 2)} />
      </footer>
    </>
  );
}

/** What the pieces of a run say together. */
function Text({ watch, row }: { watch: Watch; row: Row }): JSX.Element {
  const text = useMemo(
    () =>
      watch.timeline
        .pieces(row)
        .map((piece) => wholeOf(piece)?.payload)
        .map((payload) => (isObject(payload) && typeof payload.content === 'string' ? payload.content : ''))
        .join(''),
    [row, row.count],
  );
  return (
    <section>
      <h3>{row.count} pieces</h3>
      <p class="whole-text">{plain(text)}</p>
    </section>
  );
}

function OnlyEpisode({ watch, entry }: { watch: Watch; entry: Entry }): JSX.Element {
  const only = watch.filter.value.correlation === entry.correlation;
  return (
    <button type="button" class="button" id="only-episode" aria-pressed={only} onClick={() => watch.setFilter({ correlation: only ? '' : entry.correlation })}>
      Only this episode
    </button>
  );
}

interface Step {
  entry: Entry;
  count: number;
}

/** Pieces that follow one another are one step. */
function stepsOf(entries: readonly Entry[]): Step[] {
  const steps: Step[] = [];
  for (const entry of entries) {
    const last = steps.at(-1);
    const goesOn = last && (entry.type === 'text_delta' || entry.type === 'thinking') && last.entry.type === entry.type && last.entry.source === entry.source;
    if (goesOn) last.count++;
    else steps.push({ entry, count: 1 });
  }
  return steps;
}

function Episode({ watch, row }: { watch: Watch; row: Row }): JSX.Element | null {
  void watch.counts.value; // it may go on
  const entries = row.entry.correlation === '' ? [] : watch.episode(row.entry.correlation);
  const [first] = entries;
  if (!first || entries.length < 2) return null;
  const steps = stepsOf(entries);
  const span = entries.at(-1)!.at - first.at;
  return (
    <section>
      <h3>
        Episode, {entries.length.toLocaleString('en')} signals in {span < 1000 ? `${span} ms` : `${(span / 1000).toFixed(1)} s`}
      </h3>
      <ol class="episode">
        {steps.slice(-mostShown).map(({ entry, count }) => (
          <li key={entry.number} aria-current={entry.number >= row.entry.number && entry.number <= row.last ? 'true' : undefined}>
            <span class="ms">{(entry.at - first.at).toLocaleString('en')}</span>
            <Flag identity={watch.originOf(entry).identity} />
            <span class="what">
              <code>{plain(entry.type)}</code> {count > 1 ? `${count} pieces` : entry.summary}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
