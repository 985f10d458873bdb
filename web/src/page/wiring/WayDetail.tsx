import type { JSX } from 'preact';
import { clauseWords, filterWords, passingWords, type Board, type Goal, type Way } from '../../state/board';
import { plain } from '../../state/plain';
import type { Watch } from '../../state/watch';
import { Icon } from '../Icon';
import { Flag } from '../signals/Flag';

/** The chain of one wire, who may feed it, and what it leads to. */
export function WayDetail({ watch, board, way, onClose }: { watch: Watch; board: Board; way: Way; onClose(): void }): JSX.Element {
  const goal = board.goals.find((g) => g.id === way.to)!;
  const { choreography, bindings, onward } = goal;
  const when = choreography ? clauseWords(choreography.when) : '';
  return (
    <>
      <header>
        <h2>
          <code>{plain(way.type)}</code> <Icon name="send" small /> <bdi>{plain(way.to)}</bdi>
        </h2>
        <button type="button" class="button icon-only quiet" aria-label="Close the wire" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div class="scroll" tabIndex={0} role="group" aria-label="The selected wire">
        <p class="lead">{countWords(way, goal)}</p>
        {way.filters.length > 0 && (
          <section>
            <h3>Filters</h3>
            <ol class="chain">
              {way.filters.map((filter, i) => (
                <li key={i}>
                  <span class="place">{i + 1}</span>
                  <span>
                    {plain(filter.type)}
                    <code>{plain(filterWords(filter))}</code>
                  </span>
                  <span class="n">{passingWords(way.count?.filters[i])}</span>
                </li>
              ))}
            </ol>
            {way.count && way.count.seen > 0 && (
              <div class="share" aria-hidden="true">
                <i style={{ width: `${(100 * way.count.passed) / way.count.seen}%` }} />
              </div>
            )}
          </section>
        )}
        <section>
          <h3>Who may feed it</h3>
          {way.from === null ? (
            <p>
              Every source: none is wired to <code>{plain(way.type)}</code>.
            </p>
          ) : (
            <>
              <ul class="feeders">
                {way.from.map(({ source: key, came }) => {
                  const origin = watch.known.value.has(key) ? watch.originOf({ sourceId: key, source: key, type: '' }) : watch.originByKey(key);
                  return (
                    <li key={key}>
                      <Flag identity={origin.identity} />
                      <bdi class="grow">{plain(origin.name)}</bdi>
                      {came !== null && <span class="n">{came.toLocaleString('en')}</span>}
                    </li>
                  );
                })}
              </ul>
              <p>
                Sources are wired to <code>{plain(way.type)}</code>, so only these count.
              </p>
            </>
          )}
        </section>
        <section>
          <h3>
            <bdi>{plain(way.to)}</bdi>
          </h3>
          <dl class="evidence">
            <dt>Its own type</dt>
            <dd>{plain(choreography?.on ?? 'none')}</dd>
            {goal.ways.some((w) => w.filters.length > 0) && (
              <>
                <dt>Runs as</dt>
                <dd>__f:{plain(way.to)}</dd>
              </>
            )}
            {when !== '' && (
              <>
                <dt>When</dt>
                <dd>{plain(when)}</dd>
              </>
            )}
            <dt>Interrupts</dt>
            <dd>{choreography?.interrupts ? 'yes, by correlationId' : 'no'}</dd>
            <dt>Steps</dt>
            <dd>{choreography?.steps ?? 0}</dd>
            {bindings.map((b) => (
              <>
                <dt>Sets</dt>
                <dd>
                  {plain(b.property)} of {plain(b.entity)}
                </dd>
              </>
            ))}
            {onward.length > 0 && (
              <>
                <dt>Leads on to</dt>
                <dd>{plain(onward.join(', '))}</dd>
              </>
            )}
          </dl>
        </section>
      </div>
    </>
  );
}

function countWords({ count, filters, id }: Way, { count: reached }: Goal): string {
  if (!count) return 'While run mode is off, signals are not counted here.';
  const performed = reached ? ` The choreography was performed ${times(reached.performed)}.` : '';
  if (id.startsWith('own:')) return `No wire leads here: it is reached by its own type, ${times(count.seen)}.${performed}`;
  const came = `${count.seen.toLocaleString('en')} signals reached this wire, ${count.passed.toLocaleString('en')} passed.`;
  return `${came}${filters.length > 0 ? ' The first filter that drops a signal ends its way.' : ''}${performed}`;
}

function times(n: number): string {
  return n === 1 ? 'once' : `${n.toLocaleString('en')} times`;
}
