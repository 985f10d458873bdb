import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isOpen, timeLeft, type Approval } from '../state/approvals';
import type { App } from '../state/app';
import { agentName } from '../state/view';
import { closeSheet } from './Artifacts';
import { useClock } from './clock';
import { Icon } from './Icon';

/** What the focus goes back to when there is nothing to answer any more. */
let cameFrom: HTMLElement | null = null;

/** Whoever writes or talks is not interrupted: a stroke that was meant for something else must not answer. */
function isBusy(app: App): boolean {
  const active = document.activeElement;
  const writes = active instanceof HTMLTextAreaElement || active instanceof HTMLInputElement || active instanceof HTMLSelectElement;
  return app.model.peek().talk.held !== null || app.settingsOpen.peek() || (writes && active.value !== '');
}

/**
 * A question before a tool is used. The focus goes to the card and to neither of its buttons, so that no stray key answers; Space, which talks,
 * allows nothing even where Allow has the focus.
 */
export function ApprovalCard({ app, approval }: { app: App; approval: Approval }): JSX.Element {
  const card = useRef<HTMLElement>(null);
  const [remember, setRemember] = useState(false);
  const { connection, talk } = app.model.value;
  const now = useClock(true);
  const off = connection.state !== 'connected' || talk.kept;
  const id = `ask-${approval.id}`;
  useEffect(() => {
    closeSheet(app); // it would stand over the question
    if (isBusy(app)) {
      card.current?.scrollIntoView({ block: 'nearest' });
      return;
    }
    const active = document.activeElement;
    if (active instanceof HTMLElement && active.closest('.ask')) return; // one is being answered
    cameFrom = active instanceof HTMLElement && active !== document.body ? active : null;
    card.current?.focus();
  }, []);
  // Before it is taken away the focus can still be seen in it. Another question comes first, then what had the focus before.
  useLayoutEffect(() => {
    const element = card.current!;
    return () => {
      if (!element.contains(document.activeElement)) return;
      const next = [...document.querySelectorAll<HTMLElement>('.ask')].find((e) => e !== element);
      const back = cameFrom?.isConnected && !cameFrom.matches(':disabled') ? cameFrom : document.getElementById('conversation');
      (next ?? back)?.focus({ preventScroll: true });
    };
  }, []);
  const answer = (allow: boolean): void => void app.answer(approval.id, allow, remember);
  return (
    <section
      class="ask"
      role="group"
      ref={card}
      tabIndex={-1}
      data-risk={approval.risk}
      aria-labelledby={`${id}-title`}
      aria-describedby={`${id}-summary ${id}-risk`}
    >
      <h3 id={`${id}-title`}>
        <Icon name="warning" />
        <span>
          May it use <code>{approval.name}</code>?
        </span>
      </h3>
      <p class="summary" id={`${id}-summary`} tabIndex={approval.summary.length > 200 ? 0 : undefined}>
        {approval.summary}
      </p>
      <p class="risk">
        <b id={`${id}-risk`}>{approval.risk === 'high' ? 'High risk: it may change or destroy something.' : 'Low risk.'}</b>{' '}
        <span aria-live="off">{off ? 'Off: there is no connection to the gateway.' : `${timeLeft(approval.until, now)}. No answer is a no.`}</span>
      </p>
      <label class="remember">
        <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} />
        For the rest of this conversation
      </label>
      <p class="answers">
        <button type="button" class="button" disabled={off} aria-describedby={`${id}-why`} aria-keyshortcuts="Alt+N" onClick={() => answer(false)}>
          Deny <kbd aria-hidden="true">Alt N</kbd>
        </button>
        <button
          type="button"
          class="button"
          disabled={off}
          aria-describedby={`${id}-why`}
          aria-keyshortcuts="Alt+Y"
          onKeyDown={isNoSpace}
          onKeyUp={isNoSpace}
          onClick={() => answer(true)}
        >
          Allow <kbd aria-hidden="true">Alt Y</kbd>
        </button>
      </p>
      <p class="unseen" id={`${id}-why`}>
        {off ? 'Off: there is no connection to the gateway.' : 'Enter answers. Space talks, and allows nothing.'}
      </p>
    </section>
  );
}

function isNoSpace(event: KeyboardEvent): void {
  if (event.key === ' ') event.preventDefault();
}

/** Alt+Y and Alt+N answer the oldest question from anywhere on the page. Says whether there was one. */
export function answerByKey(app: App, event: KeyboardEvent): boolean {
  if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.repeat) return false;
  const letter = letterOf(event);
  const open = openQuestions(app)[0];
  if (!open || (letter !== 'y' && letter !== 'n')) return false;
  const box = document.getElementById(`ask-${open.id}-title`)?.closest('.ask')?.querySelector('input');
  app.answer(open.id, letter === 'y', box?.checked === true);
  return true;
}

/** The letter on the key. Where Alt makes another character of it, what stands for it is where the key is. */
function letterOf({ key, code }: KeyboardEvent): string {
  return /^[a-z]$/i.test(key) ? key.toLowerCase() : /^Key[A-Z]$/.test(code) ? code.slice(3).toLowerCase() : '';
}

export function openQuestions(app: App): readonly Approval[] {
  const { turns, open } = app.model.value.talk;
  return turns.find((t) => t.id === open)?.approvals.filter(isOpen) ?? [];
}

/** Heard at once by who cannot see the card. */
export function ApprovalAlert({ app }: { app: App }): JSX.Element {
  return (
    <div class="unseen" role="alert" id="asked">
      {openQuestions(app).map(({ id, name, summary }) => (
        <p key={id}>
          {`${agentName(app.model.value)} asks: may it use ${name}? ${summary.slice(0, 300)} Alt and Y allows, Alt and N denies.`}
        </p>
      ))}
    </div>
  );
}
