import { render } from 'preact';
import './style/tokens.css';
import './style/base.css';
import './style/frame.css';
import './style/talk.css';
import './style/helm.css';
import './style/settings.css';
import './style/narrow.css';
import './style/preferences.css';
import { inputDevices, openMicrophone } from './audio/microphone';
import { fetchEngines } from './client/engines';
import { Page } from './page/Page';
import { App } from './state/app';

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null; // closed to this page
  }
}

const app = new App({
  location: window.location,
  setAddress: (search) => history.replaceState(null, '', search),
  storage: storage(),
  timers: {
    now: () => Date.now(),
    set: (run, ms) => setTimeout(run, ms),
    clear: (id) => clearTimeout(id as ReturnType<typeof setTimeout>),
  },
  steady: () => performance.now(),
  vibrate: () => navigator.vibrate?.(12),
  fetchEngines,
  openMicrophone,
  inputDevices,
});

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden') app.hidden();
});
window.addEventListener('online', () => app.online());

render(<Page app={app} />, document.getElementById('app')!);
void app.start();
