// What the tests say about the page: where things are, and what is to be seen there.
import assert from 'node:assert/strict';
import { afterwards } from './afterwards.mjs';
import { eventually, openPage } from './browser.mjs';
import { startProxy } from './proxy.mjs';

/** The lines of the deterministic turns, as the contract fixes them. */
export const mocked = {
  user: '[mocked user] What is the current mocked vertical slice?',
  deltas: ['[mocked assistant] ', 'This is a deterministic mocked response from the gateway vertical slice.'],
  get answer() {
    return this.deltas.join('');
  },
  partial: '[mocked partial] Placeholder push-to-talk transcript in progress.',
  final: '[mocked final] Placeholder push-to-talk transcript completed from 1 appended chunk(s).',
};

/** The messages of the page, byte for byte. */
export const messages = {
  trigger: '{"type":"mocked.turn.trigger","payload":{}}',
  append: '{"type":"input_audio.append","payload":{"chunk":"placeholder"}}',
  commit: '{"type":"input_audio.commit","payload":{}}',
  cancel: '{"type":"response.cancel","payload":{}}',
};

/** The first message of the page in agent turns, which are of version 2. */
export const greeting = {
  type: 'session.start',
  payload: { turns: 'agent', interrupt: true, approvals: true, audio: { input: { encoding: 'pcm16', rate: 16000, framing: 'binary' } } },
  id: 'c1',
};

/** A message of the gateway. */
export const event = (type, payload) => JSON.stringify({ type, payload });

/** What a browser logs by itself about a socket that the test breaks. */
export const brokenSocket = [/^WebSocket connection to /];

/** What it logs when the gateway is not there at all. */
export const noGateway = [...brokenSocket, /^Failed to load resource/];

const silent = (locator) => locator.evaluate((element) => element.textContent.replace(/\s+/g, ' ').trim());

/** The page, as somebody in front of it sees it. */
export class Shown {
  constructor(page) {
    this.page = page;
    this.talk = page.locator('#talk');
    this.mocked = page.locator('#mocked');
    this.stop = page.locator('#stop');
    this.partial = page.locator('#partial');
    this.banner = page.locator('#banner');
  }

  connection = () => this.page.locator('#connection').getAttribute('data-state');
  connectionWord = () => silent(this.page.locator('#connection'));
  session = () => this.page.locator('#session').getAttribute('data-state');
  sessionWord = () => silent(this.page.locator('#session'));
  /** The words of the helm: the title, and the line below it. */
  title = () => silent(this.page.locator('.helm .words .title'));
  small = () => silent(this.page.locator('.helm .words .small'));
  bannerWords = () => silent(this.banner.locator('p'));
  bannerAction = () => this.banner.getByRole('button');
  noBanner = async () => assert.equal(await this.banner.count(), 0, 'there is a banner');

  /** Every turn shown, as [who, words] pairs. */
  conversation() {
    return this.page.evaluate(() =>
      [...document.querySelectorAll('#conversation [data-turn]')].map((turn) =>
        [...turn.querySelectorAll('[data-who]')].map((e) => [e.dataset.who, e.textContent]),
      ),
    );
  }

  /** Every state that was shown, reduced to some of its fields, without repetitions. */
  async states(...fields) {
    const all = await this.page.evaluate(() => window.seen.states);
    const picked = all.map((state) => (fields.length === 1 ? state[fields[0]] : fields.map((f) => state[f])));
    return picked.filter((state, i) => JSON.stringify(state) !== JSON.stringify(picked[i - 1]));
  }

  /** From here on: states() begins anew with what is shown now. */
  forget() {
    return this.page.evaluate(() => window.seen.states.splice(0, window.seen.states.length - 1));
  }

  seen(what) {
    return this.page.evaluate((name) => window.seen[name], what);
  }

  async ready() {
    await eventually(async () => {
      assert.equal(await this.connection(), 'connected');
      assert.equal(await this.session(), 'idle');
      assert.equal(await this.talk.isEnabled(), true);
    });
  }

  async idleAgain() {
    await eventually(async () => {
      assert.equal(await this.session(), 'idle');
      assert.equal(await this.talk.isEnabled(), true);
    });
  }

  /** Puts the pointer on the control and presses. */
  async press() {
    await this.talk.hover();
    await this.page.mouse.down();
  }

  release = () => this.page.mouse.up();

  /** What a screen reader says of a control besides its name. */
  description(locator) {
    return locator.evaluate((element) => {
      const id = element.getAttribute('aria-describedby');
      return id ? (document.getElementById(id)?.textContent ?? '').trim() : '';
    });
  }
}

/** For the page, before its own scripts: the switch "Speak the answers" is off. */
export const mute = () => localStorage.setItem('vela.speak', 'no');

/**
 * A page before a gateway, with a proxy between them unless `direct`. It is closed after the test `t`, and what went wrong on it unseen fails
 * that test. `before` is run with the proxy when the page is not there yet. Answers are text alone unless `spoken`: they take no time then.
 */
export async function visit(t, browser, vela, { turns = 'deterministic', direct = false, ready = true, spoken = false, before, init = [], ...options } = {}) {
  const proxy = direct ? null : await startProxy(vela.host);
  before?.(proxy);
  const watch = await openPage(browser, `${proxy?.url ?? vela.url}/?turns=${turns}`, { ...options, init: spoken ? init : [...init, mute] });
  const shown = new Shown(watch.page);
  afterwards(t, async () => {
    try {
      await watch.check();
    } finally {
      await watch.close();
      await proxy?.stop();
    }
  });
  if (ready) await shown.ready();
  return { page: watch.page, sockets: watch.sockets, shown, proxy };
}
