import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { changes } from '../artifact/diff';
import type { App } from '../state/app';
import { keptArtifacts, placeOf, wholeText, type Artifact } from '../state/artifacts';
import { oneLine, plain } from '../state/plain';
import { identityOf } from '../state/view';
import { newer, shownOf } from '../state/viewer';
import { timeWords } from './clock';
import { Icon, type IconName } from './Icon';
import { later } from './later';
import { Pennant } from './Pennant';
import { wide } from './wide';

const icons: Record<Artifact['body']['kind'], IconName> = {
  diff: 'diff',
  code: 'code',
  markdown: 'page',
  file: 'page',
  search_results: 'find',
  error: 'warning',
};

/** What draws the bodies is big, and comes with the first of them. Where it cannot be had, they are plain text. */
const viewer = later(() => import('./ArtifactBody'));

function Body({ body }: { body: Artifact['body'] }): JSX.Element | null {
  if (viewer.value === null) return null;
  if (viewer.value === 'none') return <pre class="code">{plain(wholeText(body))}</pre>;
  const { ArtifactBody } = viewer.value;
  return <ArtifactBody body={body} />;
}

/** Whether there is anything to look at, and whether it is in sight. */
export function artifactsShown(app: App): boolean {
  return app.model.value.talk.artifacts.length > 0 && (app.viewer.value.open ?? wide.value);
}

/** Closes them where they stand over the conversation, and says whether they did. */
export function closeSheet(app: App): boolean {
  if (wide.peek() || !artifactsShown(app)) return false;
  close(app);
  return true;
}

function close(app: App): void {
  const inside = document.getElementById('artifacts')?.contains(document.activeElement);
  app.showArtifacts(false);
  if (inside) requestAnimationFrame(() => [...document.querySelectorAll<HTMLElement>('.open-artifacts')].find((b) => b.offsetParent !== null)?.focus());
}

/** Brings them into sight, or out of it. In the bar, and beside the control where the bar has no room. */
export function OpenArtifacts({ app, place }: { app: App; place: 'bar' | 'pad' }): JSX.Element | null {
  const count = app.model.value.talk.artifacts.length;
  const shown = artifactsShown(app);
  if (count === 0) return null;
  return (
    <button
      type="button"
      id={place === 'bar' ? 'open-artifacts' : 'open-artifacts-pad'}
      class={place === 'bar' ? 'button quiet open-artifacts' : 'button open-artifacts'}
      aria-expanded={shown}
      aria-controls="artifacts"
      onClick={() => {
        if (shown) return close(app);
        app.showArtifacts(true);
        requestAnimationFrame(() => document.querySelector<HTMLElement>('#artifacts [role="tab"][aria-selected="true"]')?.focus());
      }}
    >
      <Icon name="page" />
      <span>Artifacts {count}</span>
    </button>
  );
}

/** What the agent read, edited or found: the last ones, the newest first. */
export function Artifacts({ app }: { app: App }): JSX.Element | null {
  const { artifacts } = app.model.value.talk;
  const watched = app.viewer.value;
  const shown = shownOf(watched, artifacts);
  const visible = artifactsShown(app);
  const tabs = useRef<HTMLDivElement>(null);
  const id = shown?.id;
  useEffect(() => {
    if (id !== undefined) void viewer.want();
  }, [id]);
  useEffect(() => {
    // Not scrollIntoView(), which would move what is around it as well.
    const tab = tabs.current?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (!tab) return;
    const strip = tabs.current!;
    if (tab.offsetLeft < strip.scrollLeft) strip.scrollLeft = tab.offsetLeft - 12;
    else if (tab.offsetLeft + tab.offsetWidth > strip.scrollLeft + strip.clientWidth) strip.scrollLeft = tab.offsetLeft + tab.offsetWidth - strip.clientWidth + 12;
  }, [id]);
  useEffect(() => () => void (app.viewer.value = { ...app.viewer.peek(), focused: false }), [visible]);
  if (!shown || !visible) return null;
  const behind = newer(watched, artifacts);
  const newestFirst = artifacts.toReversed();
  const choose = (to: Artifact): void => {
    app.chooseArtifact(to.id);
    requestAnimationFrame(() => document.getElementById(`artifact-${to.id}`)?.focus());
  };
  const move = (event: KeyboardEvent): void => {
    const at = newestFirst.indexOf(shown);
    const to: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: newestFirst.length - 1 };
    const index = to[event.key];
    if (index === undefined) return;
    event.preventDefault();
    choose(newestFirst[(index + newestFirst.length) % newestFirst.length]!);
  };
  return (
    <aside
      id="artifacts"
      class="artifacts"
      aria-label="Artifacts"
      onFocusIn={() => {
        if (!watched.focused) app.viewer.value = { ...watched, focused: true };
      }}
      onFocusOut={(event) => {
        const inside = event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget);
        if (!inside) app.viewer.value = { ...app.viewer.peek(), focused: false };
      }}
    >
      <header>
        <h2>Artifacts</h2>
        <span class="label">{artifacts.length < keptArtifacts ? artifacts.length : `the last ${keptArtifacts}`}</span>
        {behind > 0 && (
          <button type="button" class="link" id="newest-artifact" onClick={() => choose(newestFirst[0]!)}>
            {behind} newer
          </button>
        )}
        <button type="button" class="button icon-only quiet close" aria-label="Close artifacts" onClick={() => close(app)}>
          <Icon name="close" />
        </button>
      </header>
      <div class="tabs" role="tablist" aria-label="Artifacts, newest first" ref={tabs} onKeyDown={move}>
        {newestFirst.map((artifact) => (
          <button
            key={artifact.id}
            type="button"
            role="tab"
            id={`artifact-${artifact.id}`}
            class="tab"
            data-kind={artifact.body.kind}
            aria-selected={artifact.id === id}
            aria-controls="artifact-panel"
            tabIndex={artifact.id === id ? 0 : -1}
            onClick={() => choose(artifact)}
          >
            <Icon name={icons[artifact.body.kind]} small />
            <bdi>{artifact.title}</bdi>
          </button>
        ))}
      </div>
      <Head app={app} artifact={shown} />
      <div id="artifact-panel" class="panel" role="tabpanel" aria-labelledby={`artifact-${id}`} tabIndex={0} key={id}>
        <Body body={shown.body} />
      </div>
    </aside>
  );
}

/** Where it is from, who made it and when, and a copy of it. */
function Head({ app, artifact }: { app: App; artifact: Artifact }): JSX.Element {
  const { body, at, agent } = artifact;
  const place = placeOf(body);
  const changed = useMemo(() => (body.kind === 'diff' ? changes(body.diff) : null), [body]);
  return (
    <div class="of">
      <Pennant identity={identityOf(app.model.value, agent)} />
      {place !== '' && (
        <code class="place">
          <bdi>{oneLine(place)}</bdi>
        </code>
      )}
      {changed && (
        <span class="changed">
          <span class="plus">+{changed.added}</span> <span class="minus">-{changed.removed}</span>
        </span>
      )}
      <time class="label" dateTime={new Date(at).toISOString()}>
        {timeWords(at)}
      </time>
      <Copy key={artifact.id} text={() => wholeText(body)} />
    </div>
  );
}

export function Copy({ text }: { text(): string }): JSX.Element {
  const [done, setDone] = useState<'' | 'Copied' | 'Not copied'>('');
  useEffect(() => {
    if (done === '') return;
    const id = setTimeout(() => setDone(''), 2000);
    return () => clearTimeout(id);
  }, [done]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setDone('Copied');
    } catch {
      setDone('Not copied'); // the browser does not let this page
    }
  };
  return (
    <button type="button" class="button quiet copy" onClick={() => void copy()}>
      <Icon name="copy" small />
      <span aria-live="polite">{done || 'Copy'}</span>
    </button>
  );
}
