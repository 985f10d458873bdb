import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';
import { chainWords, type Board } from '../../state/board';
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
              <td data-head="Sources">{way.from === null ? 'all' : way.from.map((key) => plain(nameOf(watch, key))).join(', ')}</td>
              <td data-head="Signal type">
                <code>{plain(way.type)}</code>
              </td>
              <td data-head="Filters">{way.filters.length > 0 ? plain(chainWords(way.filters)) : 'none'}</td>
              <td data-head="Choreography">
                <button type="button" class="link" data-way={way.id} aria-pressed={way.id === chosen.value} onClick={() => (chosen.value = chosen.value === way.id ? '' : way.id)}>
                  <bdi>{plain(way.to)}</bdi>
                </button>
              </td>
              <td data-head="Came" class="n">
                {way.seen?.toLocaleString('en') ?? 'not counted'}
              </td>
              <td data-head="Passed" class="n">
                {way.passed?.toLocaleString('en') ?? 'not counted'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function nameOf(watch: Watch, key: string): string {
  return watch.known.peek().get(key)?.name ?? watch.originByKey(key).name;
}
