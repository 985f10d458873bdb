import { inputDevices } from './audio/microphone';
import { openPlayer } from './audio/player';
import { fetchAgents } from './client/agents';
import { fetchEngines } from './client/engines';
import { systemTimers } from './client/line';
import type { App } from './state/app';
import type { Browser } from './state/browser';

function storage(which: 'localStorage' | 'sessionStorage'): Storage | null {
  try {
    return window[which];
  } catch {
    return null; // closed to this page
  }
}

/** Made on the page and given to the browser as a download: nothing leaves the machine. */
function save(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/markdown' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** What every page of ours needs of the browser. */
export const thisBrowser = {
  location: window.location,
  setAddress: (search) => history.replaceState(null, '', window.location.pathname + search),
  storage: storage('localStorage'),
  tabStorage: storage('sessionStorage'),
  save,
  timers: systemTimers,
  steady: () => performance.now(),
  vibrate: () => navigator.vibrate?.(12),
  fetchEngines: (token) => fetchEngines(token),
  fetchAgents: (token) => fetchAgents(token),
  openPlayer,
  inputDevices,
} satisfies Partial<Browser>;

/** Tells the page what happens to it. */
export function attend(app: App): void {
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') app.hidden();
    else app.visible();
  });
  for (const press of ['pointerdown', 'keydown']) window.addEventListener(press, () => app.pressed(), { capture: true });
  window.addEventListener('online', () => app.online());
  window.addEventListener('pagehide', (event) => app.leaving(!event.persisted));
  window.addEventListener('pageshow', (event) => {
    if (event.persisted) app.stayed();
  });
  window.addEventListener('hashchange', () => app.hashChanged());
}
