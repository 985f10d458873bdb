/** What of the helm had the focus last, until something else got it. */
let last: HTMLButtonElement | null = null;

/**
 * A control that is disabled while it has the focus loses it, and a keyboard user would be back at the top of the page after each turn. So
 * the focus goes back to it as soon as it is enabled; from Stop, which has done its work, to the talk control.
 */
export function watchFocus(): () => void {
  const undo = new AbortController();
  const { signal } = undo;
  document.addEventListener(
    'focusin',
    ({ target }) => {
      last = target instanceof HTMLButtonElement && target.closest('.actions, .ring') ? target : null;
    },
    { signal },
  );
  document.addEventListener(
    'focusout',
    ({ target }) => {
      // Left by the user, not taken away.
      if (target === last && !last?.disabled) last = null;
    },
    { signal },
  );
  return () => undo.abort();
}

/** To be called when the helm was drawn anew. */
export function restoreFocus(): void {
  const active = document.activeElement;
  // A browser may leave the focus on what was just disabled until it draws.
  if (!last || (active !== document.body && active !== null && active !== last)) return;
  const back = last.id === 'stop' && last.disabled ? document.querySelector<HTMLButtonElement>('#talk') : last;
  if (back && back !== active && !back.disabled) back.focus({ preventScroll: true });
}
