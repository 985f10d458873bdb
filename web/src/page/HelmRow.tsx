import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { App } from '../state/app';
import type { Status } from '../state/status';
import { helm, type Helm } from '../state/helm';
import { spanWords, useClock } from './clock';
import { OpenArtifacts } from './Artifacts';
import { Composer, goType } from './Composer';
import { restoreFocus, watchFocus } from './focus';
import { Icon } from './Icon';
import { TalkControl } from './TalkControl';

/** The newest point of the halyard: the talk control, and one line of words beside it. It has one height in every state. */
export function HelmRow({ app }: { app: App }): JSX.Element {
  const model = app.model.value;
  const { talk } = model;
  const view = helm(model);
  const now = useClock(view.timed);
  const partial = talk.held || talk.inFlight || view.live ? talk.partial : '';
  useEffect(watchFocus, []);
  useEffect(restoreFocus);
  return (
    <section class="helm" data-phase={view.tone} data-held={talk.held ? 'yes' : 'no'} data-live={view.live ? 'yes' : 'no'} data-typing={app.typing.value ? 'yes' : 'no'} aria-label="Talk control">
      <i class="halyard" />
      <TalkControl app={app} view={view} />
      <div class="state">
        <span class="word">{view.word}</span>
        {view.timed && <span class="seconds">{spanWords(now - talk.since)}</span>}
        {model.turns === 'deterministic' && <span class="tag">Deterministic turns</span>}
        {view.handsFree.shown && (
          <button
            type="button"
            id="hands-free"
            class="switch"
            role="switch"
            aria-checked={view.handsFree.on}
            aria-describedby="hands-free-why"
            disabled={view.handsFree.disabled}
            onClick={() => app.change({ handsFree: !view.handsFree.on })}
          >
            Hands-free
            <i />
          </button>
        )}
      </div>
      <div class="words">
        <p id="partial" class="partial" hidden={partial === ''}>
          {partial.slice(0, talk.settled)}
          <span class="pale">{partial.slice(talk.settled)}</span>
        </p>
        {partial === '' && (
          <>
            {talk.status && (view.told || (talk.status.source !== undefined && !view.unsent && !talk.held)) ? (
              <StatusLine status={talk.status} by={app.nameOf(talk.status)} />
            ) : (
              <p class={view.unsent || talk.held ? 'title pale' : 'title'}>{view.title}</p>
            )}
            {view.small !== '' && (
              <p class="small">
                {view.spaceHint ? <Space text={view.small} /> : view.small}
                {view.unsent && <UnsentLinks app={app} view={view} />}
              </p>
            )}
          </>
        )}
      </div>
      <div
        class="actions"
        data-stop={view.stop.disabled ? 'off' : 'on'}
        data-turns={model.turns}
        data-artifacts={talk.artifacts.length > 0 ? 'some' : 'none'}
      >
        <Composer app={app} view={view} />
        <OpenArtifacts app={app} place="pad" />
        {(talk.held || model.turns === 'deterministic') && <span class="hint">{partial !== '' && talk.held ? view.title : ''}</span>}
        <button
          id="mocked"
          type="button"
          class="button"
          disabled={view.mocked.disabled}
          aria-describedby="mocked-why"
          onClick={() => app.runMockedTurn()}
        >
          <Icon name="run" />
          <span>Run a mocked turn</span>
        </button>
        <button
          type="button"
          class="button type"
          disabled={view.input.disabled}
          aria-expanded={app.typing.value}
          aria-controls="type"
          aria-describedby="type-why"
          onClick={() => {
            if (app.typing.value) app.typing.value = false;
            else goType(app);
          }}
        >
          <Icon name="keyboard" />
          <span>Type</span>
        </button>
        <button id="stop" type="button" class="button stop" disabled={view.stop.disabled} aria-describedby="stop-why" onClick={() => app.stop()}>
          <Icon name="stop" />
          <span>{view.stop.word}</span> <kbd aria-hidden="true">Esc</kbd>
        </button>
      </div>
      <p class="unseen" id="type-why">
        {view.input.why || 'Enter sends, Shift and Enter break the line.'}
      </p>
      <p class="unseen" id="talk-why">
        {view.control.description}
      </p>
      <p class="unseen" id="hands-free-why">
        {view.handsFree.why}
      </p>
      <p class="unseen" id="mocked-why">
        {view.mocked.why}
      </p>
      <p class="unseen" id="stop-why">
        {view.stop.why}
      </p>
    </section>
  );
}

/** What the agent does now, or another one that is followed, in place of the line that says that it does something. */
function StatusLine({ status, by }: { status: Status; by: string }): JSX.Element {
  return (
    <p class="status" id="status">
      {by !== '' && (
        <>
          <strong>
            <bdi>{by}</bdi>
          </strong>{' '}
        </>
      )}
      {status.verb}
      {status.detail !== '' && (
        <>
          {' '}
          <code>
            <bdi>{status.detail}</bdi>
          </code>
        </>
      )}
    </p>
  );
}

function UnsentLinks({ app, view }: { app: App; view: Helm }): JSX.Element {
  return (
    <span class="links">
      {view.input.shown && app.model.value.talk.unsent?.text && (
        <button type="button" class="link" id="send-unsent" aria-describedby="type-why" disabled={view.input.disabled} onClick={() => app.sendUnsent()}>
          Send as text
        </button>
      )}
      <button type="button" class="link" id="dismiss-unsent" onClick={() => app.dismissUnsent()}>
        Dismiss
      </button>
    </span>
  );
}

/** "or hold Space, let go to send", with the key drawn as one; on phones, which have none, only the end of it. */
function Space({ text }: { text: string }): JSX.Element {
  const [before, after] = text.split('Space, ');
  return (
    <>
      <span class="with-keys">
        {before}
        <kbd>Space</kbd>,{' '}
      </span>
      {after}
    </>
  );
}
