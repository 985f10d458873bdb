import type { ComponentType, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { App } from '../state/app';
import type { ViewName } from '../state/views';
import { later, type Later } from './later';

type Other = Exclude<ViewName, 'talk'>;

const views: Record<Other, Later<ComponentType<{ app: App }>>> = {
  signals: later(() => import('./signals/SignalsView').then((it) => it.SignalsView)),
  wiring: later(() => import('./wiring/WiringView').then((it) => it.WiringView)),
};

/** The views besides Talk, which come when they are asked for. */
export function Elsewhere({ app, view }: { app: App; view: Other }): JSX.Element {
  const View = views[view].value;
  useEffect(() => void views[view].want(), [view]);
  if (View !== null && View !== 'none') return <View app={app} />;
  return (
    <main class="elsewhere">
      {View && (
        <p role="alert">
          The gateway did not hand out this view.
          <button type="button" class="link" onClick={() => void views[view].want()}>
            Try again
          </button>
        </p>
      )}
    </main>
  );
}
