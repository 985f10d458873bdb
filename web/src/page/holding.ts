import type { App } from '../state/app';

/** What holds the control now: only that may let it go. */
type Holder = { pointer: number } | 'space' | 'toggle' | null;

const holders = new WeakMap<App, Holder>();

function holderOf(app: App): Holder {
  // A hold that ended by itself (discarded, lost) has no holder any more. A press that still waits for the microphone has.
  return holders.get(app) ?? null;
}

function take(app: App, holder: Holder): boolean {
  if (app.model.peek().talk.held) return false;
  holders.set(app, holder);
  app.press();
  return true;
}

function letGo(app: App): void {
  holders.set(app, null);
  app.release();
}

/**
 * Start and send with one press each: Enter, clicks of assistive technology, and everything where tapping was chosen. Where the page listens by
 * itself, such a press is a tap.
 */
export function toggle(app: App): void {
  if (app.taps !== 'no') {
    if (take(app, 'toggle')) letGo(app);
    return;
  }
  if (!app.model.peek().talk.held) take(app, 'toggle');
  else if (holderOf(app) === 'toggle') letGo(app);
}

export function holdSpace(app: App): boolean {
  if (app.settings.peek().tapInsteadOfHold) {
    toggle(app);
    return true;
  }
  return take(app, 'space');
}

export function letGoSpace(app: App): boolean {
  if (holderOf(app) !== 'space') return false;
  letGo(app);
  return true;
}

/** Makes the talk control one that is held by a pointer. Returns what undoes it. */
export function listenToHold(control: HTMLElement, app: App): () => void {
  const undo = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(target: EventTarget, name: K, run: (event: HTMLElementEventMap[K]) => void): void =>
    target.addEventListener(name, run as EventListener, { signal: undo.signal });

  const isHolder = (event: PointerEvent): boolean => {
    const holder = holderOf(app);
    return typeof holder === 'object' && holder !== null && holder.pointer === event.pointerId;
  };

  on(control, 'pointerdown', (event) => {
    if (event.button !== 0 || !event.isPrimary || app.settings.peek().tapInsteadOfHold) return;
    if (!take(app, { pointer: event.pointerId })) return;
    try {
      control.setPointerCapture(event.pointerId);
    } catch {
      // The pointer is gone already; its up or cancel follows.
    }
  });
  // On the window: up anywhere sends.
  on(window, 'pointerup', (event) => {
    if (isHolder(event)) letGo(app);
  });
  on(window, 'pointercancel', (event) => {
    if (!isHolder(event)) return;
    holders.set(app, null);
    app.loseHold('pointer');
  });
  on(window, 'blur', () => {
    holders.set(app, null);
    app.loseHold('focus');
  });
  on(control, 'click', (event) => {
    // A click without a pointer (detail 0) comes from assistive technology; one with a pointer was a hold, unless tapping was chosen.
    if (event.detail === 0 || app.settings.peek().tapInsteadOfHold) toggle(app);
  });
  on(control, 'contextmenu', (event) => event.preventDefault());
  return () => undo.abort();
}
