import { render } from 'preact';
import './style';
import { openMicrophone } from './audio/microphone';
import { attend, thisBrowser } from './browser';
import { Page } from './page/Page';
import { App } from './state/app';

const app = new App({ ...thisBrowser, openMicrophone });
attend(app);
render(<Page app={app} />, document.getElementById('app')!);
void app.start();
