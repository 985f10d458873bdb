// What only version 2 has: typed turns, sessions that outlive a page, new conversations, and who comes. What needs an answer that can be stopped in
// its middle stands in realagent.test.mjs: the echo is through before anybody could.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, startBrowser } from './lib/browser.mjs';
import { brokenSocket, greeting, visit } from './lib/page.mjs';
import { startVela } from './lib/vela.mjs';

let browser, vela;
before(async () => ([browser, vela] = await Promise.all([startBrowser(), startVela()])));
after(() => Promise.all([browser?.close(), vela?.stop()]));

const visitAgent = (t, options) => visit(t, browser, vela, { turns: 'agent', ...options });

const said = 'one two three four five six seven eight';
const turn = (words) => [
  ['user', words],
  ['agent', `You said: ${words}`],
];

async function type(page, words) {
  await page.locator('#type').fill(words);
  await page.locator('#type').press('Enter');
}

async function typed(page, shown, words) {
  await type(page, words);
  await eventually(async () => assert.deepEqual((await shown.conversation()).at(-1), turn(words)));
  await shown.idleAgain();
}

test('agent turns offer version 2 and greet; deterministic ones offer nothing', async (t) => {
  const second = await visitAgent(t);
  assert.deepEqual(second.proxy.offered, [['vela.v2']]);
  assert.deepEqual(second.proxy.sent.map((m) => JSON.parse(m)), [greeting]);
  const first = await visit(t, browser, vela);
  assert.deepEqual(first.proxy.offered, [[]]);
  assert.deepEqual(first.proxy.sent, []);
});

test('a typed turn is sent once, answered and told apart', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  await typed(page, shown, said);
  assert.deepEqual(proxy.done, ['session.start', 'input_text.submit']);
  assert.deepEqual(JSON.parse(proxy.sent[1]).payload, { text: said });
  assert.equal(await page.locator('[data-turn]').getAttribute('data-kind'), 'text');
  assert.equal(await page.locator('#type').inputValue(), '');
  assert.equal(await shown.seen('microphones'), 0);
});

test('a page that is loaded again resumes, and shows the conversation', async (t) => {
  const { page, shown, proxy } = await visitAgent(t, { expected: brokenSocket });
  await typed(page, shown, 'first');
  await typed(page, shown, 'second');
  const id = () => proxy.given.map((m) => JSON.parse(m)).findLast((m) => m.type === 'session.ready').payload.sessionId;
  const before = id();
  await page.reload();
  await shown.ready();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [turn('first'), turn('second')]));
  assert.equal(id(), before);
  assert.equal(proxy.done.filter((d) => d === 'session.resume').length, 1);
  await typed(page, shown, 'third');
  assert.deepEqual(await shown.conversation(), [turn('first'), turn('second'), turn('third')]);
});

test('a new conversation empties the page, in the same session', async (t) => {
  const { page, shown, proxy } = await visitAgent(t);
  const button = page.locator('#new-conversation');
  assert.equal(await button.isDisabled(), true);
  assert.equal(await shown.description(button), 'Off: nothing has been said.');
  await typed(page, shown, said);
  await button.click();
  await eventually(async () => assert.deepEqual(await shown.conversation(), []));
  assert.deepEqual(proxy.done, ['session.start', 'input_text.submit', 'history.clear']);
  await typed(page, shown, 'again');
  assert.deepEqual(await shown.conversation(), [turn('again')]);
  assert.equal(proxy.asked.length, 1);
});

test('the transcript that is saved has both voices', async (t) => {
  const { page, shown } = await visitAgent(t);
  const button = page.locator('#save-transcript');
  assert.equal(await button.isDisabled(), true);
  await typed(page, shown, said);
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  assert.match(download.suggestedFilename(), /^conversation-\d{4}-\d\d-\d\d-\d{4}\.md$/);
  const text = readFileSync(await download.path(), 'utf8');
  assert.match(text, /^# Conversation of \d{4}-\d\d-\d\d\n\n\*\*You\*\*, \d\d:\d\d UTC\n\n/);
  assert.ok(text.includes(`\n\n> ${said}\n\n**`), text);
  assert.ok(text.endsWith(`\n\n> You said: ${said}\n`), text);
});

/** A gateway that asks who comes, and a token for it. */
async function locked(t, rights = {}) {
  const key = randomBytes(32).toString('hex');
  const own = await startVela(['--auth', 'keys'], '127.0.0.1:0', { VELA_KEYS: `browser:${key}` });
  afterwards(t, () => own.stop());
  const answer = await fetch(`${own.url}/api/tokens`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, body: JSON.stringify(rights) });
  assert.equal(answer.status, 200, await answer.clone().text());
  return { own, token: (await answer.json()).token };
}

const unauthorised = [...brokenSocket, /^Failed to load resource: the server responded with a status of 401/];

test('a token in the address signs in, and is taken out of it', async (t) => {
  const { own, token } = await locked(t);
  const { page, shown, proxy } = await visit(t, browser, own, { turns: `agent#token=${token}` });
  assert.equal(new URL(page.url()).hash, '');
  assert.deepEqual(proxy.offered, [['vela.v2', `vela.token.${token}`]]);
  assert.ok(proxy.asked.every((address) => !address.includes(token)));
  assert.equal(await page.locator('#sign-in').count(), 0);
  await typed(page, shown, said);
  // What needs a server key is not offered, nor to be had by its address.
  assert.equal(await page.getByRole('navigation', { name: 'Views' }).count(), 0);
  const frames = () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  await page.evaluate(() => new Promise((heard) => (addEventListener('hashchange', heard, { once: true }), (location.hash = '#wiring'))).then(() => {}));
  await page.evaluate(frames);
  assert.equal(await page.locator('#talk').count(), 1);
});

test('a token that may follow signals shows them, and nothing that would need a server key', async (t) => {
  const { own, token } = await locked(t, { signals: ['follow'] });
  const { page, shown } = await visit(t, browser, own, { turns: `agent#token=${token}` });
  await typed(page, shown, said);
  const views = page.getByRole('navigation', { name: 'Views' }).getByRole('link');
  assert.deepEqual(await views.allInnerTexts(), ['Talk', 'Signals']);
  await views.nth(1).click();
  await page.locator('#signals [role=row]').filter({ hasText: 'completion' }).first().waitFor();
  assert.equal(await page.locator('#sources').count(), 0);
  assert.equal(await page.locator('.signals .wrong').count(), 0);
});

test('without a token the page asks for one, says when it was wrong, and lets in with the right one', async (t) => {
  const { own, token } = await locked(t);
  const { page, shown, proxy } = await visit(t, browser, own, { turns: 'agent', ready: false, expected: unauthorised });
  const form = page.locator('#sign-in');
  await form.waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Who is there?' }).count(), 1);
  assert.equal(await page.locator('#token-wrong').innerText(), '');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'token');
  await page.locator('#token').fill('abc.def.ghi');
  await page.locator('#token').press('Enter');
  await eventually(async () =>
    assert.equal(await page.locator('#token-wrong').innerText(), 'The gateway did not take this token. Check that all of it is there, or ask for a new one.'),
  );
  assert.equal(await page.locator('#token').getAttribute('aria-invalid'), 'true');
  assert.equal(await page.locator('#talk').count(), 0);
  assert.deepEqual(proxy.asked, []);
  await page.locator('#token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await shown.ready();
  await typed(page, shown, said);
});
