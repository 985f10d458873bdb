import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { linksOf, passingWords, type Board, type Feeder, type Way } from '../../state/board';
import { plain } from '../../state/plain';
import type { Watch } from '../../state/watch';

/** What is wired, in words: the same as the board. */
export function WayTable({ watch, board, chosen }: { watch: Watch; board: Board; chosen: Signal<string> }): JSX.Element {
  void watch.known.value; // the names of sources
  return (
    <div class="canvas" tabIndex={0} role="group" aria-label="The wires">
      <table id="ways">
        <thead>
          <tr>
            {['Sources', 'Signal type', 'Filters', 'Choreography', 'Came', 'Passed'].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {board.ways.map((way) => (
            <tr key={way.id} aria-current={way.id === chosen.value ? 'true' : undefined}>
              <td data-head="Sources">{way.from === null ? 'all' : way.from.map((feeder) => plain(feederWords(watch, feeder))).join(', ')}</td>
              <td data-head="Signal type">
                <code>{plain(way.type)}</code>
              </td>
              <td data-head="Filters">{way.filters.length > 0 ? <Chain way={way} /> : 'none'}</td>
              <td data-head="Choreography">
                <button type="button" class="link" data-way={way.id} aria-pressed={way.id === chosen.value} onClick={() => (chosen.value = chosen.value === way.id ? '' : way.id)}>
                  <bdi>{plain(way.to)}</bdi>
                </button>
              </td>
              <td data-head="Came" class="n">
                {way.count?.seen.toLocaleString('en') ?? 'not counted'}
              </td>
              <td data-head="Passed" class="n">
                {way.count?.passed.toLocaleString('en') ?? 'not counted'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Each filter with how many signals came to it and how many passed. */
function Chain({ way }: { way: Way }): JSX.Element {
  return (
    <ol class="links">
      {linksOf(way, way.filters.length).map(({ words, count }, i) => (
        <li key={i}>
          {plain(words)} {count && <span class="n">{passingWords(count)}</span>}
        </li>
      ))}
    </ol>
  );
}

function feederWords(watch: Watch, { source, came }: Feeder): string {
  const name = watch.known.peek().get(source)?.name ?? watch.originByKey(source).name;
  return came === null ? name : `${name} (${came.toLocaleString('en')})`;
}
