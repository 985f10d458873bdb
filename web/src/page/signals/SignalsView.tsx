import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import '../../style/signals.css';
import type { App } from '../../state/app';
import { kinds, kindWords, shownAtFirst, type Kind } from '../../state/kinds';
import { rateWords } from '../../state/meter';
import { plain } from '../../state/plain';
import { everything } from '../../state/timeline';
import type { Watch } from '../../state/watch';
import { Icon } from '../Icon';
import { narrow, wide } from '../wide';
import { Detail } from './Detail';
import { FlagSprite } from './Flag';
import { SignalRows } from './rows';
import { SkyCanvas } from './SkyCanvas';
import { SourceList } from './SourceList';
import { watchingOf } from './watching';

/** What is said, done and played: the sources, what comes from them, and one signal in detail. */
export function SignalsView({ app }: { app: App }): JSX.Element {
  const { watch, midi } = watchingOf(app);
  const sheet = useSignal(false);
  const opened = useSignal(false); // the detail, where it comes over the list
  const opener = useRef<HTMLButtonElement>(null);
  const selected = watch.selected.value;
  const { operates } = app;
  useEffect(() => watch.begin(), [watch]);
  const list = useRef<HTMLDivElement>(null);
  const closeSheet = (): void => {
    sheet.value = false;
    opener.current?.focus();
  };
  const closeDetail = (): void => {
    if (wide.value || !opened.value) watch.follow();
    opened.value = false;
    list.current?.focus();
  };
  const openDetail = (focus: boolean): void => {
    opened.value = true;
    if (focus) requestAnimationFrame(() => document.querySelector<HTMLElement>('#detail .scroll')?.focus());
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    if (sheet.value && narrow.value) closeSheet();
    else if (selected) closeDetail();
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    if (sheet.value) document.querySelector<HTMLElement>('#sources button')?.focus();
  }, [sheet.value]);
  const shown = selected !== null && (wide.value || opened.value) ? selected : null;
  return (
    <main class="signals" data-detail={shown ? 'open' : undefined} onKeyDown={keys}>
      <h1 class="unseen">Signals</h1>
      <FlagSprite />
      {operates && (!narrow.value || sheet.value) && (
        <aside id="sources" class="sources" aria-label="Sources" inert={narrow.value && shown !== null}>
          {narrow.value && (
            <header>
              <h2>Sources</h2>
              <button type="button" class="button icon-only quiet" aria-label="Close the sources" onClick={closeSheet}>
                <Icon name="close" />
              </button>
            </header>
          )}
          <SourceList app={app} watch={watch} midi={midi} />
        </aside>
      )}
      <section class="stream" aria-label="Timeline">
        <Tools watch={watch} list={list}>
          {operates && narrow.value && (
            <button ref={opener} type="button" class="button" id="open-sources" aria-expanded={sheet.value} onClick={() => (sheet.value = !sheet.value)}>
              Sources
            </button>
          )}
        </Tools>
        <SkyCanvas watch={watch} />
        <Kinds watch={watch} />
        <Rows watch={watch} operates={operates} list={list} onOpen={openDetail} />
        <Foot watch={watch} />
      </section>
      {shown && (
        <aside id="detail" class="detail" aria-label="Signal">
          <Detail watch={watch} row={shown} onClose={closeDetail} />
        </aside>
      )}
    </main>
  );
}

function Tools({ watch, list, children }: { watch: Watch; list: { current: HTMLElement | null }; children?: JSX.Element | false }): JSX.Element {
  const { hold, perSecond } = watch.counts.value;
  const find = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const slash = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      find.current?.focus();
    };
    window.addEventListener('keydown', slash);
    return () => window.removeEventListener('keydown', slash);
  }, []);
  return (
    <div class="tools">
      {children}
      <input
        ref={find}
        id="find"
        class="field"
        type="search"
        aria-label="Find in type, source or text"
        placeholder="Find in type, source or text"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={watch.filter.value.find}
        onInput={({ currentTarget }) => watch.setFilter({ find: currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || watch.filter.value.find === '') return;
          event.preventDefault();
          watch.setFilter({ find: '' });
          list.current?.focus();
        }}
      />
      <span class="rate" id="signals-per-second">
        {rateWords(perSecond)} signals/s
      </span>
      <button type="button" class="button" id="pause" aria-pressed={hold === 'paused'} onClick={() => (hold === 'paused' ? watch.follow() : watch.pause())}>
        <Icon name={hold === 'paused' ? 'run' : 'pause'} small />
        {hold === 'paused' ? 'Go on' : 'Pause'}
      </button>
    </div>
  );
}

function Kinds({ watch }: { watch: Watch }): JSX.Element {
  const { ofKind } = watch.counts.value;
  const { kinds: shown } = watch.filter.value;
  const toggle = (kind: Kind): void => {
    const next = new Set(shown);
    if (!next.delete(kind)) next.add(kind);
    watch.setFilter({ kinds: next });
  };
  return (
    <div class="kinds" role="group" aria-label="Kinds of signals">
      {kinds.map((kind) => (
        <button key={kind} type="button" class="chip" id={`kind-${kind}`} aria-pressed={shown.has(kind)} onClick={() => toggle(kind)}>
          <span>{kindWords[kind]}</span>
          <span class="n">{ofKind[kind] > 0 ? `${rateWords(ofKind[kind])}/s` : '0'}</span>
        </button>
      ))}
    </div>
  );
}

/** The list itself is drawn by hand, a frame at a time: it is too quick for components. */
function Rows({ watch, operates, list, onOpen }: { watch: Watch; operates: boolean; list: { current: HTMLDivElement | null }; onOpen(focus: boolean): void }): JSX.Element {
  const rows = useRef<SignalRows | null>(null);
  const height = narrow.value ? 60 : 44;
  useEffect(() => {
    const drawn = new SignalRows(list.current!, watch, height, () => onOpen(false));
    rows.current = drawn;
    const undo = watch.onDraw(() => drawn.draw());
    return () => {
      undo();
      drawn.close();
    };
  }, [watch, height]);
  const { rows: count } = watch.counts.value;
  const keys = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { timeline } = watch;
    const last = timeline.length - 1;
    const at = timeline.indexOf(timeline.selected);
    const page = rows.current?.page ?? 1;
    const to: Record<string, number> = {
      ArrowUp: at < 0 ? last : at - 1,
      ArrowDown: at < 0 ? last : at + 1,
      PageUp: (at < 0 ? last : at) - page,
      PageDown: (at < 0 ? last : at) + page,
      Home: 0,
    };
    if (event.key === 'End') watch.follow();
    else if (event.key === 'Enter' && timeline.selected) onOpen(true);
    else if (event.key in to && last >= 0) {
      const index = Math.min(last, Math.max(0, to[event.key]!));
      watch.select(timeline.row(index)!);
      rows.current?.reveal(index);
    } else return;
    event.preventDefault();
  };
  return (
    <div class="list">
      <div id="signals" ref={list} class="rows" role="grid" tabIndex={0} aria-label="Signals, the newest last" aria-live="off" aria-colcount={5} onKeyDown={keys} />
      {count === 0 && <Nothing watch={watch} operates={operates} />}
    </div>
  );
}

function Nothing({ watch, operates }: { watch: Watch; operates: boolean }): JSX.Element | null {
  const { kept } = watch.counts.value;
  const following = watch.following.value;
  if (kept === 0) return following.state === 'open' ? <p class="nothing">No signals yet.{operates && ' Connect a source.'}</p> : null;
  const clear = (): void => watch.setFilter({ ...everything, kinds: shownAtFirst });
  return (
    <p class="nothing">
      Nothing matches.
      <button type="button" class="link" id="clear-filters" onClick={clear}>
        Clear filters
      </button>
    </p>
  );
}

function Foot({ watch }: { watch: Watch }): JSX.Element {
  const { kept, newer, hold } = watch.counts.value;
  const { correlation } = watch.filter.value;
  const following = watch.following.value;
  const missed = watch.missed.value;
  const why = { paused: 'Paused.', selected: 'Held on the selected signal.', scrolled: 'Held where you scrolled to.' };
  const trouble = { off: '', open: '', connecting: 'Connecting.', waiting: 'The stream of signals is lost. Trying again.', refused: following.state === 'refused' ? plain(following.words) : '' };
  return (
    <footer class="foot">
      <span role="status" class={following.state === 'refused' ? 'wrong' : undefined}>
        {trouble[following.state] || (hold ? why[hold] : '')}
        {/* Said once, and not with each that comes. */}
        {hold === 'paused' && <span class="unseen"> {kept.toLocaleString('en')} signals are kept.</span>}
      </span>
      {hold && (
        <button type="button" class="link" id="follow" onClick={() => watch.follow()}>
          {newer > 0 ? `${newer.toLocaleString('en')} newer, follow again` : 'Follow again'}
        </button>
      )}
      {correlation !== '' && (
        <button type="button" class="link" onClick={() => watch.setFilter({ correlation: '' })}>
          Only one episode, show all
        </button>
      )}
      <span class="kept" id="kept">
        {missed > 0 && `${missed.toLocaleString('en')} missed, `}
        {kept.toLocaleString('en')} kept of {watch.timeline.capacity.toLocaleString('en')}
      </span>
    </footer>
  );
}
