// Turns with a voice: a microphone that hears a sentence, the recogniser, and the echo that answers.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, startBrowser } from './lib/browser.mjs';
import { picture } from './lib/looks.mjs';
import { event, greeting, mocked, visit } from './lib/page.mjs';
import { speak } from './lib/speech.mjs';
import { startVela } from './lib/vela.mjs';

const sentence = 'this is a test';

let browser, vela, microphone;
before(async () => {
  microphone = speak(sentence);
  [browser, vela] = await Promise.all([startBrowser({ microphone: microphone.file }), startVela()]);
});
after(() => Promise.all([browser?.close(), vela?.stop()]));

const visitAgent = (t, options) => visit(t, browser, vela, { turns: 'agent', ...options });

const types = (proxy) => proxy.done;
const count = (proxy, type) => types(proxy).filter((t) => t === type).length;

/** The first press asks for the microphone. */
async function openMicrophone(shown) {
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
}

/** Keeps holding until the sentence was recognised. */
async function heard(shown) {
  await eventually(async () => assert.match(await shown.partial.innerText(), new RegExp(sentence)));
}

/** What is on the page after a turn that was spoken and answered. */
async function answered(shown, proxy) {
  await eventually(async () => {
    const [user, agent] = (await shown.conversation()).at(-1) ?? [];
    assert.match(user?.[1] ?? '', new RegExp(sentence));
    assert.equal(agent?.[1], `You said: ${user[1]}`);
  });
  await shown.idleAgain();
  assert.equal(await shown.partial.isVisible(), false);
  assert.equal(types(proxy).at(-1), 'input_audio.commit');
  assert.equal(count(proxy, 'input_audio.commit'), 1);
  assert.equal(count(proxy, 'response.cancel'), 0);
  assert.equal(count(proxy, 'input_audio.clear'), 0);
}

/** That the page has greeted the gateway, and said nothing else. */
function onlyGreeted(proxy) {
  assert.deepEqual(proxy.sent.map((message) => JSON.parse(message)), [greeting]);
  assert.deepEqual(types(proxy), ['session.start']);
}

test('the first press asks for the microphone and starts no turn', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  assert.equal(await shown.seen('microphones'), 0);
  assert.equal(await shown.title(), 'Hold to talk');
  assert.equal(await shown.small(), 'or hold Space, let go to send');
  await openMicrophone(shown);
  assert.equal(await shown.seen('microphones'), 1);
  await page.waitForTimeout(300); // of sound that nobody asked for
  onlyGreeted(proxy);
  assert.equal(await shown.session(), 'idle');
});

test('hold, speak, let go: partial words, the final ones, the answer streamed, idle', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  await openMicrophone(shown);
  await shown.forget();
  await shown.press();
  await eventually(async () => assert.equal(await shown.session(), 'listening'));
  assert.equal(await shown.talk.getAttribute('aria-pressed'), 'true');
  await heard(shown);
  assert.match(await shown.stop.innerText(), /^Discard\b/);
  await picture(page, 'voice-listening');
  await shown.release();
  await answered(shown, proxy);
  await picture(page, 'voice-answered');
  const states = await shown.states('session');
  assert.deepEqual(states, ['idle', 'listening', 'thinking', 'speaking', 'idle']);
  const grown = (await shown.states('agent')).filter((text) => text !== '');
  assert.ok(grown.length > 1, `the answer came at once: ${grown}`);
  for (let i = 1; i < grown.length; i++) assert.ok(grown[i].startsWith(grown[i - 1]), 'the answer did not grow');
  assert.deepEqual(await shown.states('connection'), ['connected']);
});

test('what is sent is 16 kHz PCM16 in binary frames, as long as the hold', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  await openMicrophone(shown);
  await page.evaluate(() => {
    window.pointer = {};
    for (const what of ['pointerdown', 'pointerup']) window.addEventListener(what, () => (window.pointer[what] = performance.now()), { capture: true });
  });
  await shown.press();
  await heard(shown);
  await shown.release();
  const held = await page.evaluate(() => window.pointer.pointerup - window.pointer.pointerdown);
  await answered(shown, proxy);
  assert.equal(count(proxy, 'input_audio.append'), 0);
  assert.ok(proxy.sound.length > 1, 'it came at once');
  let bytes = 0;
  for (const pcm of proxy.sound) {
    assert.ok(pcm.length > 0);
    assert.equal(pcm.length % 2, 0);
    bytes += pcm.length;
  }
  assert.deepEqual(types(proxy), ['session.start', ...proxy.sound.map(() => 'sound'), 'input_audio.commit']);
  const ms = bytes / 32;
  assert.ok(ms > 0.8 * held - 300 && ms < 1.2 * held + 300, `${ms} ms of sound in a hold of ${held} ms`);
});

for (const sampleRate of [48000, 44100]) {
  test(`a device of ${sampleRate} Hz is resampled and understood`, async (t) => {
    const { shown, proxy } = await visitAgent(t, { init: [`window.audioContextOptions = { sampleRate: ${sampleRate} }`] });
    await openMicrophone(shown);
    assert.equal(await shown.seen('sampleRate'), sampleRate);
    await shown.press();
    await heard(shown);
    await shown.release();
    await answered(shown, proxy);
  });
}

test('the space bar holds, wherever the focus is on the page', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  await page.keyboard.press('Space');
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  await page.keyboard.down('Space');
  await heard(shown);
  await page.keyboard.down('Space'); // a repeat
  await page.keyboard.up('Space');
  await answered(shown, proxy);
});

test('Enter on the control starts and sends', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  await shown.talk.focus();
  await page.keyboard.press('Enter');
  await eventually(async () => assert.match(await shown.title(), /^The microphone is on\./));
  await shown.talk.focus();
  await page.keyboard.press('Enter');
  await heard(shown);
  await page.keyboard.press('Enter');
  await answered(shown, proxy);
});

test('a finger holds the control of a phone', async (t) => {
  const { page, shown, proxy } = await visitAgent(t, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const finger = await page.context().newCDPSession(page);
  const box = await shown.talk.boundingBox();
  const touch = (type, ...points) => finger.send('Input.dispatchTouchEvent', { type, touchPoints: points });
  const on = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await touch('touchStart', on);
  await touch('touchEnd');
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  await touch('touchStart', on);
  await eventually(async () => assert.equal(await shown.session(), 'listening'));
  await touch('touchMove', { x: on.x + 30, y: on.y - 200 });
  await heard(shown);
  await picture(page, 'voice-phone-listening');
  await touch('touchEnd');
  await answered(shown, proxy);
  await picture(page, 'voice-phone-answered');
  assert.equal(await page.evaluate(() => getSelection().toString()), '');
});

test('a finger that the system takes away discards the turn', async (t) => {
  const { page, shown, proxy } = await visitAgent(t, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const finger = await page.context().newCDPSession(page);
  const box = await shown.talk.boundingBox();
  const touch = (type, ...points) => finger.send('Input.dispatchTouchEvent', { type, touchPoints: points });
  const on = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await touch('touchStart', on);
  await touch('touchEnd');
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  await touch('touchStart', on);
  await eventually(async () => assert.equal(await shown.session(), 'listening'));
  await touch('touchCancel');
  await eventually(async () => assert.match(await shown.small(), /^Not sent, because the hold was broken off\./));
  await eventually(() => assert.equal(types(proxy).at(-1), 'input_audio.clear'));
  assert.equal(count(proxy, 'input_audio.commit'), 0);
});

test('a press that is too short sends no turn', async (t) => {
  const { page, shown, proxy } = await visitAgent(t, { clock: true });
  await openMicrophone(shown);
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1000); // however long the machine takes, the press takes no time
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.title(), 'Hold to talk'));
  assert.equal(await shown.session(), 'idle');
  assert.equal(count(proxy, 'input_audio.commit'), 0);
  assert.equal(count(proxy, 'input_audio.clear'), Number(count(proxy, 'sound') > 0));
  assert.equal(count(proxy, 'response.cancel'), 0);
  assert.deepEqual(await shown.conversation(), []);
});

for (const [how, lose, words] of [
  ['Escape', ({ page }) => page.keyboard.press('Escape'), null],
  ['a window that loses the focus', ({ page }) => page.evaluate(() => window.dispatchEvent(new Event('blur'))), /page lost focus/],
  ['a page that is hidden', ({ page }) => hide(page), /page was hidden/],
  ['a microphone that is unplugged', ({ page }) => unplug(page), /microphone went away/],
]) {
  test(`a hold ended by ${how} is never sent`, async (t) => {
    const visited = await visitAgent(t);
    const { shown, proxy } = visited;
    await openMicrophone(shown);
    await shown.press();
    await heard(shown);
    await lose(visited);
    await eventually(() => assert.equal(types(proxy).at(-1), 'input_audio.clear'));
    await eventually(async () => assert.equal(await shown.session(), 'idle'));
    await shown.release();
    if (words) {
      assert.match(await shown.title(), new RegExp(sentence));
      assert.match(await shown.small(), words);
    }
    assert.equal(await shown.partial.isVisible(), false);
    assert.equal(count(proxy, 'input_audio.commit'), 0);
    assert.equal(types(proxy).at(-1), 'input_audio.clear');
    assert.deepEqual(await shown.conversation(), []);
  });
}

test('a page that is hidden gives the microphone back, and the next press opens it again', async (t) => {
  const { page, shown } = await visitAgent(t);
  await openMicrophone(shown);
  const tracks = () => page.evaluate(() => window.seen.tracks.map((track) => track.readyState));
  assert.deepEqual(await tracks(), ['live']);
  await hide(page);
  await eventually(async () => assert.deepEqual(await tracks(), ['ended']));
  await page.evaluate(() => delete document.visibilityState);
  await shown.press();
  await eventually(async () => assert.equal(await shown.session(), 'listening'));
  assert.deepEqual(await tracks(), ['ended', 'live']);
  await page.keyboard.press('Escape');
  await shown.release();
});

test('the microphone is given back after 30 s without a turn', async (t) => {
  const { page, shown } = await visitAgent(t, { clock: true });
  const now = () => page.evaluate(() => Date.now());
  const before = await now();
  await openMicrophone(shown);
  const after = await now();
  const tracks = () => page.evaluate(() => window.seen.tracks.map((track) => track.readyState));
  await page.clock.pauseAt(before + 29_000);
  assert.deepEqual(await tracks(), ['live']);
  await page.clock.pauseAt(after + 31_000);
  await eventually(async () => assert.deepEqual(await tracks(), ['ended']));
});

test('a running answer can be stopped; what was shown stays', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  await openMicrophone(shown);
  await shown.press();
  await heard(shown);
  // The echo is quick: the click waits in the page for its first word.
  await page.evaluate(() => {
    const stop = document.querySelector('#stop');
    const watch = new MutationObserver(() => {
      if (!document.querySelector('[data-who="agent"]')?.textContent || stop.disabled) return;
      watch.disconnect();
      window.stopped = stop.textContent;
      stop.click();
    });
    watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  });
  await shown.release();
  await eventually(() => assert.equal(types(proxy).at(-1), 'response.cancel'));
  await shown.idleAgain();
  assert.match(await page.evaluate(() => window.stopped), /^Stop\b/);
  const [[user, agent]] = await shown.conversation();
  assert.match(user[1], new RegExp(sentence));
  assert.ok(agent[1].length > 0 && `You said: ${user[1]}`.startsWith(agent[1]), agent[1]);
  if (!proxy.given.some((m) => m.includes('response.completed'))) {
    assert.equal(await page.locator('[data-turn] .cut').innerText(), 'you stopped this');
  }
});

/** The frames of one turn, but for what numbers and dates them. */
function frames(given) {
  const without = ['id', 'seq', 'ts', 'itemId', 'turnId', 'responseId', 'firstTokenMs', 'gatewayMs', 'totalMs'];
  return given.map((message) => JSON.stringify(JSON.parse(message, (key, value) => (without.includes(key) ? undefined : value))));
}

test('mocked turns run between spoken ones, the same to the byte, and leave those alone', async (t) => {
  const { shown, proxy } = await visitAgent(t);
  const mock = async () => {
    const begin = proxy.given.length;
    const turns = (await shown.conversation()).length;
    await shown.mocked.click();
    await eventually(async () => assert.deepEqual((await shown.conversation())[turns], [['user', mocked.user], ['agent', mocked.answer]]));
    await shown.idleAgain();
    return frames(proxy.given.slice(begin));
  };
  const first = await mock();
  assert.deepEqual(first, [
    event('session.state', { value: 'listening' }),
    event('transcript.final', { text: mocked.user }),
    event('session.state', { value: 'thinking' }),
    event('response.created', {}),
    event('session.state', { value: 'speaking' }),
    ...mocked.deltas.map((text) => event('response.text.delta', { text })),
    event('response.completed', { heardText: mocked.answer }),
    event('turn.metrics', {}),
    event('session.state', { value: 'idle' }),
  ]);
  assert.deepEqual(types(proxy), ['session.start', 'mocked.turn.trigger']);
  await openMicrophone(shown);
  await shown.press();
  await heard(shown);
  await shown.release();
  await answered(shown, proxy);
  const spoken = (await shown.conversation())[1];
  assert.deepEqual(await mock(), first);
  assert.deepEqual((await shown.conversation())[1], spoken);
  const seqs = proxy.given.map((m) => JSON.parse(m).seq).filter((seq) => seq !== undefined);
  assert.deepEqual(seqs, seqs.map((_, i) => i + 1));
});

for (const [name, settings, banner, title, small] of [
  [
    'without the permission',
    { allowed: false },
    'Microphone refused. Vela cannot hear you.',
    'The browser refused the microphone',
    'Allow it beside the address bar, then try again. You can type meanwhile.',
  ],
  ['without a microphone', { microphone: null }, 'No microphone found.', 'No microphone found', 'Plug one in, then try again. You can type meanwhile.'],
]) {
  test(`${name} the page says so plainly, and what needs none still works`, async (t) => {
    const without = await startBrowser({ microphone: microphone.file, ...settings });
    afterwards(t, () => without.close());
    const { page, shown, proxy } = await visit(t, without, vela, { turns: 'agent' });
    await shown.talk.click();
    await eventually(async () => assert.equal(await shown.bannerWords(), banner));
    assert.equal(await shown.bannerAction().innerText(), 'Try again');
    assert.equal(await shown.title(), title);
    await picture(page, `voice-${name.replaceAll(' ', '-')}`);
    assert.ok((await shown.small()).startsWith(small));
    assert.equal(await shown.talk.isDisabled(), true);
    assert.equal(await shown.description(shown.talk), `Off: ${title.toLowerCase()}.`);
    assert.equal(await shown.connection(), 'connected');
    onlyGreeted(proxy);
    await shown.mocked.click();
    await eventually(async () => assert.match((await shown.conversation())[0]?.[1]?.[1] ?? '', /gateway vertical slice\.$/));
    await shown.bannerAction().click();
    await eventually(async () => assert.equal(await shown.seen('microphones'), 2));
    await eventually(async () => assert.equal(await shown.bannerWords(), banner));
  });
}

/** Chromium without a window never hides a page by itself. */
function hide(page) {
  return page.evaluate(() => {
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
}

/** No script can pull a plug: the track is ended, and says what it would have said. */
function unplug(page) {
  return page.evaluate(() => {
    const track = window.seen.tracks.at(-1);
    track.stop();
    track.dispatchEvent(new Event('ended'));
  });
}
