import { Fragment, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { App } from '../state/app';
import { banner } from '../state/banner';
import { useClock } from './clock';
import { Icon } from './Icon';

/** The page connects by itself; that it has not yet is worth a banner only when it takes long. */
const patience = 1500;

export function BannerRow({ app }: { app: App }): JSX.Element {
  const model = app.model.value;
  const [patient, setPatient] = useState(true);
  useEffect(() => {
    const id = setTimeout(() => setPatient(false), patience);
    return () => clearTimeout(id);
  }, []);
  const started = model.connection.state !== 'not connected';
  useEffect(() => {
    if (started) setPatient(false);
  }, [started]);
  const now = useClock(model.connection.retryAt !== null);
  const shown = !started && patient ? null : banner(model, now, app.idleFor());
  // Two places, one of them empty: a live region is heard only if it was there before its words.
  return (
    <div class="banners">
      <div role="alert">{shown?.alert && <Row app={app} shown={shown} />}</div>
      <div>{shown && !shown.alert && <Row app={app} shown={shown} />}</div>
    </div>
  );
}

function Row({ app, shown }: { app: App; shown: NonNullable<ReturnType<typeof banner>> }): JSX.Element {
  const { strong, text, countdown, tone, action } = shown;
  return (
    <div id="banner" class="banner" data-tone={tone}>
      <Icon name="warning" />
      <p>
        <strong>{strong}</strong> {text}
        {countdown && (
          <span aria-live="off">
            {countdown.split(/(?<=\.) /).map((sentence, i) => (
              <Fragment key={i}>
                {i > 0 && ' '}
                <span class="whole">{sentence}</span>
              </Fragment>
            ))}
          </span>
        )}
      </p>
      {action && (
        <button type="button" class="button" onClick={() => app.act(action.does)}>
          {action.word}
        </button>
      )}
    </div>
  );
}
