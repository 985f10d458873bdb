// The deterministic turns: the control shell, the mocked turn, and cancelling either.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, startBrowser } from './lib/browser.mjs';
import { event, messages, mocked, visit } from './lib/page.mjs';
import { startVela } from './lib/vela.mjs';

// `slow` leaves time to cancel between two events of an answer.
let browser, vela, slow;
before(
  async () => ([browser, vela, slow] = await Promise.all([startBrowser(), startVela(['--pace', '40ms']), startVela(['--pace', '1500ms'])])),
);
after(() => Promise.all([browser?.close(), vela?.stop(), slow?.stop()]));

const mockedTurn = [
  ['user', mocked.user],
  ['agent', mocked.answer],
];
const shellTurn = [
  ['user', mocked.final],
  ['agent', mocked.answer],
];

test('Run a mocked turn sends exactly one mocked.turn.trigger, and shows the turn', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  assert.equal(await shown.mocked.innerText(), 'Run a mocked turn');
  await shown.mocked.click();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [mockedTurn]));
  await shown.idleAgain();
  assert.deepEqual(proxy.sent, [messages.trigger]);
});

test('the mocked-turn control and the mic control are off while a mocked turn is in flight', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela, { before: (p) => (p.holdFrom = (m) => m.includes(mocked.deltas[1])) });
  await shown.forget();
  await shown.mocked.click();
  await eventually(async () => assert.equal(await shown.session(), 'speaking'));
  const why = 'Off: a mocked turn is in flight. Wait, or cancel it.';
  for (const control of [shown.talk, shown.mocked]) {
    assert.equal(await control.isDisabled(), true);
    assert.equal(await shown.description(control), why);
  }
  assert.equal(await shown.title(), 'Mocked turn in flight');
  // Neither a pointer nor a key gets past that.
  await shown.talk.click({ force: true });
  await shown.mocked.click({ force: true });
  await page.locator('#conversation').focus();
  await page.keyboard.press('Space');
  proxy.pass();
  await shown.idleAgain();
  assert.deepEqual(proxy.sent, [messages.trigger]);
  for (const [session, talk, mockedOn] of await shown.states('session', 'talk', 'mocked')) {
    if (session !== 'idle') assert.deepEqual([talk, mockedOn], [false, false], `enabled while ${session}`);
  }
  assert.equal(await shown.mocked.isEnabled(), true);
});

test('both controls are off from the click on, before the gateway has answered', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { before: (p) => (p.holdFrom = (m) => m.includes('listening')) });
  await shown.mocked.click();
  await eventually(async () => assert.equal(await shown.mocked.isDisabled(), true));
  assert.equal(await shown.talk.isDisabled(), true);
  assert.equal(await shown.session(), 'idle');
  await eventually(() => assert.deepEqual(proxy.sent, [messages.trigger]));
});

test('pressing sends exactly one append, releasing exactly one commit', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela);
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  // A held control has nothing more to say: give it the time to prove it.
  await page.waitForTimeout(400);
  assert.deepEqual(proxy.sent, [messages.append]);
  await shown.release();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  await shown.idleAgain();
  assert.deepEqual(proxy.sent, [messages.append, messages.commit]);
});

test('a deterministic turn has no minimum: a click is one append and one commit', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  await shown.talk.click();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  assert.deepEqual(proxy.sent, [messages.append, messages.commit]);
});

test('letting go anywhere sends', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela);
  await shown.press();
  await eventually(() => assert.equal(proxy.sent.length, 1));
  await page.mouse.move(640, 200);
  await shown.release();
  await eventually(() => assert.deepEqual(proxy.sent, [messages.append, messages.commit]));
});

test('the space bar holds the control: one append, one commit, repeats ignored', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela);
  await page.keyboard.down('Space');
  await page.keyboard.down('Space');
  await page.keyboard.down('Space');
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  await page.keyboard.up('Space');
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  assert.deepEqual(proxy.sent, [messages.append, messages.commit]);
});

test('Enter on the control starts and sends', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela);
  await shown.talk.focus();
  await page.keyboard.press('Enter');
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  assert.deepEqual(proxy.sent, [messages.append]);
  await page.keyboard.press('Enter');
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  assert.deepEqual(proxy.sent, [messages.append, messages.commit]);
});

test('a second pointer or key during a hold is ignored', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela);
  await shown.press();
  await eventually(() => assert.deepEqual(proxy.sent, [messages.append]));
  await page.keyboard.press('Space');
  await shown.talk.dispatchEvent('pointerdown', { button: 0, isPrimary: false, pointerId: 77, bubbles: true });
  await shown.talk.dispatchEvent('pointerup', { button: 0, isPrimary: false, pointerId: 77, bubbles: true });
  assert.equal(await shown.talk.getAttribute('aria-pressed'), 'true');
  await shown.release();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  assert.deepEqual(proxy.sent, [messages.append, messages.commit]);
});

test('the control is labelled a control shell, and no microphone is ever asked for', async (t) => {
  const { page, shown } = await visit(t, browser, vela);
  assert.equal((await shown.talk.innerText()).replace(/\s+/g, ' '), 'control shell');
  assert.equal(await page.getByRole('button', { name: 'Control shell, hold to send placeholder audio' }).count(), 1);
  assert.equal(await shown.title(), 'Control shell, no microphone');
  assert.equal(await shown.small(), 'Deterministic turns. Holding this sends placeholder audio, not your voice.');
  assert.equal(await page.locator('.state .tag').innerText(), 'Deterministic turns');
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.isVisible(), true));
  await shown.release();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  assert.equal(await shown.seen('microphones'), 0);
  assert.equal(await shown.seen('contexts'), 0);
});

test('the latest partial transcript is shown while the control is held', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  const second = mocked.partial.replace('in progress.', 'in progress (2 chunks).');
  proxy.inject(event('transcript.partial', { text: second }));
  await eventually(async () => assert.equal(await shown.partial.innerText(), second));
  assert.equal(await shown.session(), 'listening');
  assert.deepEqual(await shown.conversation(), []);
  await shown.release();
  await shown.idleAgain();
});

test('the final transcript is shown, and the partial is cleared', async (t) => {
  const { shown } = await visit(t, browser, vela);
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  await shown.release();
  await eventually(async () => assert.deepEqual((await shown.conversation())[0]?.[0], ['user', mocked.final]));
  await shown.idleAgain();
  assert.equal(await shown.partial.isVisible(), false);
  const order = await shown.states('partial', 'user');
  assert.deepEqual(order, [
    ['', ''],
    [mocked.partial, ''],
    ['', mocked.final],
  ]);
});

test('the answer is streamed: its text grows delta by delta', async (t) => {
  const { shown } = await visit(t, browser, vela);
  for (const start of [() => shown.mocked.click(), () => shown.talk.click()]) {
    await shown.forget();
    const turns = (await shown.conversation()).length;
    await start();
    await eventually(async () => assert.equal((await shown.conversation()).at(turns)?.[1]?.[1], mocked.answer));
    await shown.idleAgain();
    const grown = (await shown.states('agent')).slice(-3);
    assert.deepEqual(grown, ['', mocked.deltas[0], mocked.answer]);
  }
});

test('after a completed cycle the same socket runs the next turn, of either kind', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  const turns = [];
  for (const [control, turn] of [
    [shown.talk, shellTurn],
    [shown.mocked, mockedTurn],
    [shown.mocked, mockedTurn],
    [shown.talk, shellTurn],
  ]) {
    await control.click();
    turns.push(turn);
    await eventually(async () => assert.deepEqual(await shown.conversation(), turns));
    await shown.idleAgain();
  }
  assert.equal(proxy.asked.length, 1);
});

test('the cancel control is enabled only while a turn is active, and is Discard while held', async (t) => {
  const { shown } = await visit(t, browser, vela);
  assert.equal(await shown.stop.isVisible(), true);
  assert.equal(await shown.stop.isDisabled(), true);
  assert.equal(await shown.description(shown.stop), 'Off: no turn is active.');
  await shown.mocked.click();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [mockedTurn]));
  await shown.idleAgain();
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.isVisible(), true));
  assert.equal(await shown.stop.isEnabled(), true);
  assert.match(await shown.stop.innerText(), /^Discard\b/);
  await shown.release();
  await eventually(async () => assert.equal((await shown.conversation()).length, 2));
  await shown.idleAgain();
  assert.equal(await shown.stop.isDisabled(), true);
  for (const [session, talk, stop, word] of await shown.states('session', 'talk', 'stop', 'stopWord')) {
    if (session === 'none') assert.equal(stop, false, 'enabled without a session');
    else if (session !== 'idle') assert.equal(stop, true, `off while ${session}`);
    else if (talk && word === 'Cancel') assert.equal(stop, false, 'enabled while idle');
    if (['thinking', 'speaking'].includes(session)) assert.equal(word, 'Cancel');
  }
});

for (const [phase, reached, stays] of [
  ['thinking', (s) => s.session === 'thinking', [['user', mocked.user]]],
  [
    'speaking',
    (s) => s.agent === mocked.deltas[0],
    [
      ['user', mocked.user],
      ['agent', mocked.deltas[0]],
    ],
  ],
]) {
  for (const [how, cancel] of [
    ['the cancel control', ({ page }) => clickHere(page)],
    ['Escape', ({ page }) => page.keyboard.press('Escape')],
  ]) {
    test(`cancel while ${phase} with ${how}: the indicator is cleared, what was shown stays, nothing more comes`, async (t) => {
      const visited = await visit(t, browser, slow);
      const { page, shown, proxy } = visited;
      await shown.mocked.click();
      await shown.stop.hover({ force: true });
      await eventually(async () => assert.ok((await page.evaluate(() => window.seen.states)).some(reached)));
      await cancel(visited);
      await shown.idleAgain();
      assert.deepEqual(proxy.sent, [messages.trigger, messages.cancel]);
      assert.equal(await shown.stop.isDisabled(), true);
      assert.equal(await page.locator('.helm').getAttribute('data-phase'), 'idle');
      assert.equal(await page.locator('.helm .seconds').count(), 0);
      assert.equal(await shown.title(), 'Control shell, no microphone');
      const shownThen = (await shown.conversation())[0].filter(([, text]) => text !== '');
      assert.deepEqual(shownThen, stays);
      assert.equal(await page.locator('[data-turn] .cut').innerText(), 'you stopped this');
      // The rest of the turn would have come within three paces.
      await shown.forget();
      await page.waitForTimeout(4700);
      assert.equal((await page.evaluate(() => window.seen.states)).length, 1, 'something changed after the cancel');
      assert.equal(proxy.given.at(-1), event('session.state', { value: 'idle' }));
      // And the next turn is whole, and its own.
      await shown.mocked.click();
      await eventually(async () => assert.deepEqual((await shown.conversation())[1], mockedTurn));
      assert.deepEqual((await shown.conversation())[0].filter(([, text]) => text !== ''), stays);
      assert.equal(proxy.asked.length, 1);
    });
  }
}

test('cancel works the same in a turn that a commit started', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, slow);
  await shown.talk.click();
  await shown.stop.hover({ force: true });
  await eventually(async () => assert.deepEqual((await shown.conversation())[0]?.[1], ['agent', mocked.deltas[0]]));
  await clickHere(page);
  await shown.idleAgain();
  assert.deepEqual(proxy.sent, [messages.append, messages.commit, messages.cancel]);
  assert.deepEqual(await shown.conversation(), [[['user', mocked.final], ['agent', mocked.deltas[0]]]]);
  await shown.mocked.click();
  await eventually(async () => assert.deepEqual((await shown.conversation())[1], mockedTurn));
});

for (const [how, lose, note] of [
  ['Escape', ({ page }) => page.keyboard.press('Escape'), null],
  ['the Discard control', ({ shown }) => shown.stop.dispatchEvent('click'), null],
  ['a window that loses the focus', ({ page }) => page.evaluate(() => window.dispatchEvent(new Event('blur'))), 'focus'],
  ['a page that is hidden', ({ page }) => hide(page), 'hidden'],
  ['a pointer that is taken away', ({ page }) => page.evaluate(() => window.dispatchEvent(new PointerEvent('pointercancel', { pointerId: 1 }))), 'pointer'],
]) {
  test(`a hold ended by ${how} is cancelled and never committed`, async (t) => {
    const visited = await visit(t, browser, vela);
    const { shown, proxy } = visited;
    await shown.press();
    await eventually(async () => assert.equal(await shown.partial.isVisible(), true));
    await lose(visited);
    await eventually(() => assert.deepEqual(proxy.sent, [messages.append, messages.cancel]));
    await eventually(async () => assert.equal(await shown.session(), 'idle'));
    await shown.release();
    await eventually(async () => assert.equal(await shown.talk.getAttribute('aria-pressed'), 'false'));
    assert.equal(await shown.partial.isVisible(), false);
    if (note) {
      assert.equal(await shown.title(), mocked.partial);
      assert.match(await shown.small(), /^Not sent, because .*Dismiss$/);
      await shown.page.getByRole('button', { name: 'Dismiss' }).click();
    }
    assert.equal(await shown.title(), 'Control shell, no microphone');
    // The next turn counts its own chunks.
    await shown.talk.click();
    await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
    assert.deepEqual(proxy.sent, [messages.append, messages.cancel, messages.append, messages.commit]);
  });
}

/** Clicks where the pointer is: nothing is faster, and what is to be cancelled does not wait. */
async function clickHere(page) {
  await page.mouse.down();
  await page.mouse.up();
}

/** Chromium without a window never hides a page by itself. */
function hide(page) {
  return page.evaluate(() => {
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
}

test('tap instead of hold: one press starts, the next one sends', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('switch', { name: 'Tap instead of hold' }).click();
  await page.getByRole('button', { name: 'Close settings' }).click();
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  assert.deepEqual(proxy.sent, [messages.append]);
  assert.equal(await shown.talk.getAttribute('aria-pressed'), 'true');
  assert.match(await shown.talk.getAttribute('aria-label'), /^Control shell, press to send/);
  await shown.talk.click();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [shellTurn]));
  assert.deepEqual(proxy.sent, [messages.append, messages.commit]);
});
