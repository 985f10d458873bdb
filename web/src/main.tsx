import { render } from 'preact';
import './style/tokens.css';
import './style/base.css';
import './style/frame.css';
import './style/talk.css';
import './style/agent.css';
import './style/artifacts.css';
import './style/helm.css';
import './style/settings.css';
import './style/sign-in.css';
import './style/narrow.css';
import './style/preferences.css';
import { inputDevices, openMicrophone } from './audio/microphone';
import { openPlayer } from './audio/player';
import { fetchAgents } from './client/agents';
import { fetchEngines } from './client/engines';
import { Page } from './page/Page';
import { App } from './state/app';

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

const app = new App({
  location: window.location,
  setAddress: (search) => history.replaceState(null, '', window.location.pathname + search),
  storage: storage('localStorage'),
  tabStorage: storage('sessionStorage'),
  save,
  timers: {
    now: () => Date.now(),
    set: (run, ms) => setTimeout(run, ms),
    clear: (id) => clearTimeout(id as ReturnType<typeof setTimeout>),
  },
  steady: () => performance.now(),
  vibrate: () => navigator.vibrate?.(12),
  fetchEngines: (token) => fetchEngines(token),
  fetchAgents: (token) => fetchAgents(token),
  openMicrophone,
  openPlayer,
  inputDevices,
});

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

render(<Page app={app} />, document.getElementById('app')!);
void app.start();
