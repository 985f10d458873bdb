// Chromium, and a page of it that is watched: what goes wrong unseen fails the test.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { record } from './record.mjs';

const always = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * A browser with a data directory of its own. It hears the WAV file `microphone` over and over, or has no microphone at all; `allowed` says
 * what the user answers to the question for it.
 */
export async function startBrowser({ microphone = null, allowed = true } = {}) {
  const args = [...always];
  if (microphone) args.push('--use-fake-device-for-media-stream', `--use-file-for-fake-audio-capture=${microphone}`);
  if (allowed) args.push('--use-fake-ui-for-media-stream');
  return chromium.launch({ executablePath: process.env.VELA_CHROMIUM || '/usr/bin/chromium', headless: true, args });
}

/**
 * A page in a context of its own. `watch.check()` fails on what must not happen on any page: an exception nobody caught, an error in the
 * console that is not in `expected`, a violation of the content security policy, a request to another origin than its own and those in `also`,
 * hosts with their ports. With `clock`, the test can move the page's clock.
 */
export async function openPage(browser, url, { init = [], expected = [], also = [], clock = false, ...context } = {}) {
  const inside = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 800 }, ...context });
  const page = await inside.newPage();
  page.setDefaultTimeout(patience);
  const wrong = [];
  const { host } = new URL(url);
  const hosts = [host, ...also];
  page.on('pageerror', (error) => wrong.push(`not caught: ${error.stack ?? error}`));
  page.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !expected.some((e) => e.test(text))) wrong.push(`console: ${text}`);
  });
  const sockets = [];
  page.on('websocket', (socket) => sockets.push(socket.url()));
  page.on('request', (request) => {
    const to = new URL(request.url());
    if (!hosts.includes(to.host) && to.protocol !== 'data:' && to.protocol !== 'blob:') wrong.push(`asked another origin: ${request.url()}`);
  });
  await page.addInitScript(record);
  for (const script of init) await page.addInitScript(script);
  if (clock) await page.clock.install();
  await page.goto(url);
  return {
    page,
    sockets,
    async check() {
      const violations = await page.evaluate(() => window.seen.violations);
      for (const violation of violations) wrong.push(`content security policy: ${violation}`);
      for (const address of sockets) if (!hosts.includes(new URL(address).host)) wrong.push(`a socket to another origin: ${address}`);
      assert.deepEqual(wrong, []);
    },
    close: () => inside.close(),
  };
}

/** How long a test waits for what happens by itself, in ms: many times what it takes, since a machine may be busy with something else. */
export const patience = 30_000;

/**
 * Tries until `attempt` no longer throws; throws its last error after `ms`. For what happens by itself, sooner or later. An attempt may itself have waited
 * for something that is gone by now: the last one is begun after that time.
 */
export async function eventually(attempt, ms = patience) {
  const end = performance.now() + ms;
  for (;;) {
    const begun = performance.now();
    try {
      return await attempt();
    } catch (error) {
      if (begun > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}
