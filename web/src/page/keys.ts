import type { App } from '../state/app';
import { answerByKey } from './ApprovalCard';
import { closeSheet } from './Artifacts';
import { goType } from './Composer';
import { holdSpace, letGoSpace, toggle } from './holding';

/** Listens to the keys of the whole page. Returns what undoes it. */
export function listenToKeys(app: App): () => void {
  const undo = new AbortController();
  const { signal } = undo;
  window.addEventListener('keydown', (event) => down(app, event), { signal });
  window.addEventListener('keyup', (event) => up(app, event), { signal });
  return () => undo.abort();
}

/** Space talks where it means nothing else: on the control, on the conversation, on the page. */
function talksHere(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return true;
  return target === document.body || target === document.documentElement || target.id === 'talk' || target.id === 'conversation';
}

/** Where a stroke is a letter, not a command. */
function writesHere(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function down(app: App, event: KeyboardEvent): void {
  if (app.view.peek() !== 'talk') return elsewhere(app, event);
  if (!event.defaultPrevented && !app.settingsOpen.peek() && answerByKey(app, event)) return event.preventDefault();
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (app.settingsOpen.peek()) {
    // The drawer closes itself on Escape.
    return;
  }
  if (event.key === 'Escape') {
    if (app.model.peek().talk.held ? app.stop() : closeSheet(app) || app.stop()) event.preventDefault();
    else app.typing.value = false;
  } else if (event.key === '/' && !writesHere(event.target)) {
    if (goType(app)) event.preventDefault();
  } else if (event.key === ' ' && talksHere(event.target)) {
    // Also for repeats: a held key would scroll the conversation.
    event.preventDefault();
    if (!event.repeat) holdSpace(app);
  } else if (event.key === 'Enter' && (event.target as HTMLElement | null)?.id === 'talk') {
    event.preventDefault();
    if (!event.repeat) toggle(app);
  }
}

/** Where neither the talk control nor a question can be seen, the one thing left to do by key is to stop the turn. */
function elsewhere(app: App, event: KeyboardEvent): void {
  if (event.key === 'Escape' && !event.defaultPrevented && !app.settingsOpen.peek() && app.stop()) event.preventDefault();
}

function up(app: App, event: KeyboardEvent): void {
  if (event.key !== ' ' || app.view.peek() !== 'talk') return;
  // On a button, the end of a Space is a click.
  if (letGoSpace(app) || talksHere(event.target)) event.preventDefault();
}
