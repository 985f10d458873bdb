import type { JSX, Ref } from 'preact';
import type { App } from '../state/app';
import { connectionWord, sessionState, sessionWord } from '../state/view';
import { AgentChoice } from './AgentChoice';
import { ConversationTools } from './ConversationTools';
import { Brand, Icon } from './Icon';
import { Views } from './Views';

/** views: whether there are others than this one, as in a room there are not. */
export function TopBar({ app, opener, views }: { app: App; opener: Ref<HTMLButtonElement>; views?: boolean }): JSX.Element {
  const { connection, talk, turns, signIn } = app.model.value;
  const waits = connection.retryAt !== null;
  const talks = turns === 'agent' && !signIn && app.view.value === 'talk';
  return (
    <header class="bar">
      <span class="brand">
        <Brand />
        Vela
      </span>
      {views && !signIn && app.views.length > 1 && <Views app={app} />}
      {talks && <ConversationTools app={app} place="bar" />}
      {turns === 'agent' && !signIn && <AgentChoice app={app} />}
      <dl class="facts">
        <div class="fact">
          <dt class="label">Connection</dt>
          <dd>
            <i class="dot" data-look={waits ? 'connecting' : connection.state} />
            <span id="connection" data-state={connection.state}>
              {connectionWord(connection)}
            </span>
          </dd>
        </div>
        <div class="fact session">
          <dt class="label">Session</dt>
          <dd>
            <i class="phase" data-phase={talk.kept ? 'idle' : talk.phase} />
            <span id="session" data-state={sessionState(talk)}>
              {sessionWord(talk)}
            </span>
          </dd>
        </div>
      </dl>
      <button
        ref={opener}
        type="button"
        class="button icon-only quiet"
        aria-label="Settings"
        aria-haspopup="dialog"
        onClick={() => {
          app.settingsOpen.value = true;
          void app.refreshEngines();
        }}
      >
        <Icon name="settings" />
      </button>
    </header>
  );
}
