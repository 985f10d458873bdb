import type { JSX } from 'preact';
import type { App } from '../state/app';
import type { Helm } from '../state/helm';
import { Icon } from './Icon';

/** Well below what the gateway takes, and more than anybody types. */
const longest = 16_000;

/** What surely fits into one line of it. */
const oneLine = 32;

/** Typed turns. Enter sends, Shift+Enter breaks the line. */
export function Composer({ app, view }: { app: App; view: Helm }): JSX.Element {
  const draft = app.draft.value;
  const send = (): void => {
    if (!app.submit(draft)) return;
    app.draft.value = '';
    app.typing.value = false;
  };
  return (
    <form
      class="composer"
      data-tall={draft.includes('\n') || draft.length > oneLine ? 'yes' : 'no'}
      hidden={!view.input.shown}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        id="type"
        class="field"
        rows={1}
        maxLength={longest}
        value={draft}
        placeholder="Type instead"
        aria-label="Type instead"
        aria-keyshortcuts="/"
        aria-describedby="type-why"
        enterkeyhint="send"
        disabled={view.input.disabled}
        onInput={(event) => (app.draft.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          if (!event.repeat) send();
        }}
      />
      <button
        id="send"
        type="submit"
        class="button icon-only"
        aria-label="Send"
        aria-describedby="type-why"
        hidden={draft === ''}
        disabled={view.input.disabled}
      >
        <Icon name="send" />
      </button>
    </form>
  );
}

/** Brings the typed input into sight, where it is not, and the caret into it. */
export function goType(app: App): boolean {
  const input = document.querySelector<HTMLTextAreaElement>('#type:not(:disabled)');
  if (!input || input.closest('[hidden]')) return false;
  app.typing.value = true;
  // It may be drawn only now.
  requestAnimationFrame(() => input.focus());
  return true;
}
