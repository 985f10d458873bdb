import type { JSX } from 'preact';
import type { Outcome } from '../../state/outcome';
import { plain } from '../../state/plain';
import { timeOfDay } from '../signals/rows';

/** What comes out of a run: dispatches, interrupts and assignments, the newest first. It changes by itself, so it can be held. */
export function OutcomePanel({ outcome }: { outcome: Outcome }): JSX.Element {
  const { lines, dispatches, interrupts, assignments, following, paused } = outcome.shown.value;
  return (
    <section class="outcome" id="outcome" aria-labelledby="outcome-head">
      <header>
        <h2 id="outcome-head">What comes out</h2>
        <p class="n">
          {following.state === 'connecting'
            ? 'Connecting…'
            : `${counted(dispatches, 'dispatch', 'dispatches')}, ${counted(interrupts, 'interrupt', 'interrupts')}, ${counted(assignments, 'assignment', 'assignments')} seen here`}
        </p>
        <button type="button" class="button quiet" id="outcome-pause" aria-pressed={paused} onClick={() => outcome.pause(!paused)}>
          {paused ? 'Go on' : 'Pause'}
        </button>
      </header>
      {following.state === 'refused' && (
        <p class="trouble" role="alert">
          {plain(following.words)}
        </p>
      )}
      {following.state === 'waiting' && <p class="trouble">The connection was lost. It is tried again.</p>}
      {lines.length === 0 ? (
        <p class="nothing">Nothing has come out yet.</p>
      ) : (
        <ol tabIndex={0} role="list" aria-labelledby="outcome-head">
          {lines.map(({ number, at, name, about, words }) => (
            <li key={number} data-command={name}>
              <time>{timeOfDay(at)}</time>
              <span class="what">{name}</span>
              <b>
                <bdi>{about}</bdi>
              </b>
              <code>{words}</code>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function counted(n: number, one: string, many: string): string {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}
