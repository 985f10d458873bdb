import type { JSX } from 'preact';
import type { App } from '../state/app';
import { helm } from '../state/helm';
import { OpenArtifacts } from './Artifacts';
import { Icon } from './Icon';

/** What is done with the conversation as a whole. In the bar where it has room, in the settings where it has not. */
export function ConversationTools({ app, place }: { app: App; place: 'bar' | 'settings' }): JSX.Element {
  const model = app.model.value;
  const { clear } = helm(model);
  const empty = model.talk.turns.length === 0;
  const id = (name: string): string => (place === 'bar' ? name : `${name}-settings`);
  return (
    <div class="tools">
      {clear.shown && (
        <button
          id={id('new-conversation')}
          type="button"
          class="button quiet"
          disabled={clear.disabled}
          aria-describedby={id('new-conversation-why')}
          onClick={() => app.newConversation()}
        >
          <Icon name="new" />
          <span>New conversation</span>
        </button>
      )}
      <span class="unseen" id={id('new-conversation-why')}>
        {clear.why}
      </span>
      <button
        id={id('save-transcript')}
        type="button"
        class="button quiet"
        disabled={empty}
        aria-describedby={id('save-transcript-why')}
        onClick={() => app.saveTranscript()}
      >
        <Icon name="save" />
        <span>Save transcript</span>
      </button>
      {place === 'bar' && <OpenArtifacts app={app} place="bar" />}
      <span class="unseen" id={id('save-transcript-why')}>
        {empty ? 'Off: nothing has been said.' : ''}
      </span>
    </div>
  );
}
