// What the page shows of an agent at work, and how it is answered. The agent is a stand-in that says what a test tells it (lib/standin.mjs): these are
// tests of the page. Real agents are tested elsewhere.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, startBrowser } from './lib/browser.mjs';
import { barriers, faint, picture, sideways, unexplained } from './lib/looks.mjs';
import { brokenSocket } from './lib/page.mjs';
import { artifacts, begin, finish, meet, someAgents, use } from './lib/standin.mjs';
import { startVela } from './lib/vela.mjs';

let browser, vela;
before(async () => ([browser, vela] = await Promise.all([startBrowser(), startVela()])));
after(() => Promise.all([browser?.close(), vela?.stop()]));

const question = { approvalId: 'a1', callId: 'c1', name: 'bash', summary: 'go test ./session', risk: 'high', expiresMs: 60_000 };

const shows = (locator, text) => eventually(async () => assert.equal((await locator.innerText()).replace(/\s+/g, ' ').trim(), text));
const gone = (locator) => eventually(async () => assert.equal(await locator.count(), 0));
const there = (locator, n = 1) => eventually(async () => assert.equal(await locator.count(), n));
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);

test('the agent: shown, chosen by keyboard, kept for the next visit', async (t) => {
  const { page, gateway, shown } = await meet(t, browser, vela, { expected: brokenSocket });
  assert.deepEqual(gateway.of('session.start'), [
    { turns: 'agent', interrupt: true, approvals: true, audio: { input: { encoding: 'pcm16', rate: 16000, framing: 'binary' } } },
  ]);
  const choice = page.locator('#agent-choice');
  await shows(choice, 'Claude in the project');
  await choice.focus();
  await page.keyboard.press('ArrowDown');
  const chosen = page.getByRole('option', { name: /^Claude/, selected: true });
  await eventually(async () => assert.equal(await chosen.evaluate((e) => e === document.activeElement), true));
  await page.keyboard.press('End');
  const last = page.getByRole('option').last();
  await eventually(async () => assert.equal(await last.evaluate((e) => e === document.activeElement), true));
  assert.match(await last.innerText(), /Not there: Nothing answers on port 18789\. Start it, then try again\./);
  await page.keyboard.press('Enter');
  assert.equal(gateway.of('session.start').length, 1, 'one that is not there was chosen');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await shows(choice, 'Ollama');
  assert.deepEqual(gateway.of('session.start')[1], { agent: 'ollama' });
  await eventually(async () => assert.equal(await focused(page), 'agent-choice'));
  // Another visit, in a session of its own.
  gateway.events.length = 0;
  await page.evaluate(() => sessionStorage.clear());
  const again = await page.context().newPage();
  await again.goto(`${gateway.url}/?turns=agent`);
  await eventually(() => assert.equal(gateway.of('session.start')[2]?.agent, 'ollama'));
  await again.close();
  assert.equal(await shown.connection(), 'connected');
});

test('the agent cannot be changed during a turn, and a refusal changes nothing', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway, shown } = met;
  await begin(met);
  const choice = page.locator('#agent-choice');
  assert.equal(await choice.isDisabled(), true);
  assert.equal(await shown.description(choice), 'Off during a turn.');
  finish(gateway);
  await eventually(async () => assert.equal(await choice.isEnabled(), true));
  gateway.refuses.add('ollama');
  await choice.click();
  await page.getByRole('option', { name: /^Ollama/ }).click();
  await eventually(async () => assert.equal(await shown.bannerWords(), 'This gateway cannot do that. Nothing changed.'));
  await shows(choice, 'Claude in the project');
});

test('one agent, or no list of them: a name and no choice', async (t) => {
  for (const [agents, expected] of [
    [{ default: 'claude', agents: [someAgents.agents[0]] }, 'Claude in the project'],
    [null, 'claude'],
  ]) {
    const { page } = await meet(t, browser, vela, { agents, expected: [/^Failed to load resource/] });
    await shows(page.locator('#agent-present'), expected);
    assert.equal(await page.locator('#agent-choice').count(), 0);
  }
});

test('thoughts are folded, tell that they go on, and open by keyboard', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway, shown } = met;
  await begin(met);
  gateway.say('thinking.delta', { text: 'It may be ' });
  gateway.say('thinking.delta', { text: 'the context.' });
  const thought = page.locator('.thought');
  await shows(thought.locator('summary'), 'Thinking');
  assert.equal(await thought.locator('p').isVisible(), false);
  await thought.locator('summary').focus();
  await page.keyboard.press('Enter');
  await shows(thought.locator('p'), 'It may be the context.');
  gateway.say('response.text.delta', { text: 'The context.' });
  await shows(thought.locator('summary'), 'Thoughts, no part of the answer');
  assert.deepEqual((await shown.conversation())[0][1], ['agent', 'The context.']);
});

test('tools stand in their order with what became of them, and open on what went in and out', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  await begin(met);
  use(gateway, 'c1', 'grep', { pattern: 'evCancel' });
  use(gateway, 'c2', 'bash', { command: 'go test ./session' }, { content: '<script>window.hacked = 1</script>'.repeat(200) }, false);
  gateway.say('tool.call', { callId: 'c3', name: 'read_file', input: { path: 'session/fsm.go' } });
  await there(page.locator('.step'), 3);
  const rows = await page.locator('.step summary').allInnerTexts();
  assert.deepEqual(
    rows.map((r) => r.replace(/, \d+ ms/, '').replace(/\s+/g, ' ').trim()),
    ['grep evCancel done', 'bash go test ./session failed', 'read_file session/fsm.go running'],
  );
  await page.locator('.step summary').nth(1).focus();
  await page.keyboard.press('Enter');
  const out = page.getByRole('region', { name: 'What came out' });
  await eventually(async () => assert.match(await out.innerText(), /^<script>window\.hacked/));
  assert.ok((await out.boundingBox()).height <= 202, 'what came out has no bound');
  assert.equal(await page.locator('.step script').count(), 0);
  gateway.say('response.cancelled', { responseId: 'r1', reason: 'client', heardText: '', playedMs: 0 });
  await eventually(async () => assert.match(await page.locator('.step').last().innerText(), /not finished/));
});

test('the status is told in words, and goes 5 s after the last one and with the answer', async (t) => {
  const met = await meet(t, browser, vela, { clock: true });
  const { page, gateway, shown } = met;
  const status = page.locator('#status');
  await begin(met);
  await page.clock.pauseAt(new Date(Date.now() + 60_000));
  gateway.say('status', { type: 'status', action: 'reading_file', detail: '/home/me/session/fsm.go' });
  await shows(status, 'Reading .../session/fsm.go');
  await page.clock.runFor(4000);
  gateway.say('status', { type: 'status', action: 'executing_command', detail: 'go test -race ./session -run TestCancel' });
  await shows(status, 'Running go test -race ./session -ru...');
  await page.clock.runFor(4900);
  assert.equal(await status.count(), 1);
  await page.clock.runFor(200);
  await gone(status);
  assert.equal(await shown.title(), 'Working on it');
  gateway.say('status', { type: 'status', action: 'analyzing' });
  await shows(status, 'Analysing');
  finish(gateway);
  await gone(status);
  const announced = (await shown.seen('announced')).filter((a) => /^(Reading|Running|Analysing)/.test(a));
  assert.deepEqual(announced, ['Reading .../session/fsm.go', 'Running go test -race ./session -ru...', 'Analysing']);
});

test('artifacts: tabs by keyboard, an older one stays in sight, ten are kept', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  await begin(met);
  for (const kind of Object.keys(artifacts)) gateway.say('artifact', artifacts[kind]);
  const tab = page.getByRole('tab');
  const panel = page.getByRole('tabpanel');
  await there(tab, 6);
  assert.equal(await page.getByRole('tab', { selected: true }).innerText(), 'Edit: fsm.go');
  await eventually(async () => assert.match(await panel.innerText(), /-\s*if err := s\.machine\.Event\(ctx, evCommit\)/));
  await page.getByRole('tab', { selected: true }).focus();
  for (const text of [
    /^12 13 14 15 16 17 func TestCancel/,
    /^3 places in 2 files\. session\/fsm\.go 41/,
    /^Session A state machine owned by one goroutine, see the notes and fsm\.go\./,
    /one two$/,
    /^exit status 1 --- FAIL/,
  ]) {
    await page.keyboard.press('ArrowRight');
    await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-selected')), 'true'));
    await eventually(async () => assert.match((await panel.innerText()).replace(/\s+/g, ' ').trim(), text));
  }
  // It is looked at: what comes does not take its place.
  gateway.say('artifact', { ...artifacts.error, title: 'newer' });
  await there(tab, 7);
  assert.equal(await page.getByRole('tab', { selected: true }).innerText(), 'bash');
  await page.getByRole('button', { name: '6 newer' }).click();
  await eventually(async () => assert.equal(await page.getByRole('tab', { selected: true }).innerText(), 'newer'));
  for (let i = 1; i <= 9; i++) gateway.say('artifact', { ...artifacts.error, title: `e${i}` });
  await eventually(async () => assert.equal((await tab.allInnerTexts()).at(0), 'e9'));
  assert.equal(await tab.count(), 10);
  assert.equal((await tab.allInnerTexts()).at(-1), 'newer');
  await page.keyboard.press('Tab');
  assert.match(await focused(page), /copy/);
  await page.getByRole('button', { name: 'Close artifacts' }).click();
  await gone(page.locator('#artifacts'));
  await eventually(async () => assert.equal(await focused(page), 'open-artifacts'));
  await page.keyboard.press('Enter');
  await there(page.locator('#artifacts'));
});

test('an artifact is copied whole', async (t) => {
  const met = await meet(t, browser, vela, { permissions: ['clipboard-read', 'clipboard-write'] });
  const { page, gateway } = met;
  await begin(met);
  gateway.say('artifact', artifacts.diff);
  await page.getByRole('button', { name: 'Copy' }).click();
  await there(page.getByRole('button', { name: 'Copied' }));
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), artifacts.diff.diff);
});

test('links of a text lead to the web only, and know nothing of the page', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  await begin(met);
  const content = '[good](https://example.com/) [bad](javascript:alert(1)) <img src=x onerror=alert(1)>\n\n![p](data:image/png;base64,AAAA)';
  gateway.say('artifact', { ...artifacts.markdown, content });
  const link = page.locator('.prose a');
  await there(link);
  assert.deepEqual(await link.evaluate((a) => [a.href, a.rel, a.textContent]), ['https://example.com/', 'noopener noreferrer', 'good']);
  assert.equal(await page.locator('.prose img').count(), 0);
  assert.match(await page.locator('.prose').innerText(), /<img src=x onerror=alert\(1\)>/);
});

test('a question is answered by keyboard alone: no key that talks or writes answers it', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  await begin(met);
  await page.locator('#conversation').focus();
  gateway.say('tool.call', { callId: 'c1', name: 'bash', input: { command: 'go test ./session' } });
  gateway.say('approval.request', question);
  const card = page.locator('.ask');
  await there(card);
  await eventually(async () => assert.equal(await focused(page), 'ask'));
  assert.match(await page.locator('#asked').innerText(), /may it use bash\? go test \.\/session/);
  await shows(page.locator('.step .took'), 'running, waits for you');
  const strays = [' ', 'Enter', 'y', 'n', ' '];
  for (const stray of strays) await page.keyboard.press(stray);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^Allow/);
  await page.keyboard.press(' ');
  await page.keyboard.down(' ');
  await page.keyboard.down(' ');
  await page.keyboard.up(' ');
  assert.deepEqual(gateway.of('approval.answer'), [], 'a stray key answered');
  assert.equal(gateway.of('input_audio.append').length + gateway.received.filter((m) => m.type === 'sound').length, 0);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press(' '); // the box
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await eventually(() => assert.deepEqual(gateway.of('approval.answer'), [{ approvalId: 'a1', allow: true, remember: true }]));
  await gone(card);
  await eventually(async () => assert.equal(await focused(page), 'conversation'));
  await shows(page.locator('.step .took'), 'running, you allowed it');
});

test('Space held on the talk control is let go without an answer, when a question comes meanwhile', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  await begin(met);
  await page.locator('#talk').focus();
  await page.keyboard.down(' ');
  gateway.say('approval.request', question);
  await there(page.locator('.ask'));
  await page.keyboard.down(' ');
  await page.keyboard.up(' ');
  await page.keyboard.press(' ');
  await page.keyboard.press(' ');
  assert.deepEqual(gateway.of('approval.answer'), []);
  await page.keyboard.press('Alt+n');
  await eventually(() => assert.deepEqual(gateway.of('approval.answer'), [{ approvalId: 'a1', allow: false }]));
});

test('whoever types goes on typing, and answers with Alt', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  await begin(met);
  await page.locator('#type').focus();
  await page.keyboard.type('yes n');
  gateway.say('approval.request', question);
  await there(page.locator('.ask'));
  await page.keyboard.type('o y');
  assert.equal(await page.locator('#type').inputValue(), 'yes no y');
  assert.deepEqual(gateway.of('approval.answer'), []);
  await page.keyboard.press('Alt+y');
  await eventually(() => assert.deepEqual(gateway.of('approval.answer'), [{ approvalId: 'a1', allow: true }]));
  assert.equal(await page.locator('#type').inputValue(), 'yes no y');
});

test('a question is taken back by its result, by the end of the answer, and by time', async (t) => {
  const met = await meet(t, browser, vela, { clock: true });
  const { page, gateway, shown } = met;
  const card = page.locator('.ask');
  await begin(met);
  await page.locator('#stop').focus();
  gateway.say('tool.call', { callId: 'c1', name: 'bash', input: {} });
  gateway.say('approval.request', question);
  await there(card);
  await eventually(async () => assert.equal(await focused(page), 'ask'));
  gateway.say('tool.result', { callId: 'c1', name: 'bash', success: true });
  await gone(card);
  await eventually(async () => assert.equal(await focused(page), 'stop'));

  await page.clock.pauseAt(new Date(Date.now() + 60_000));
  gateway.say('tool.call', { callId: 'c2', name: 'bash', input: {} });
  gateway.say('approval.request', { ...question, approvalId: 'a2', callId: 'c2' });
  await eventually(async () => assert.match(await card.innerText(), /60 seconds to answer\. No answer is a no\./));
  await page.clock.runFor(58_000);
  await eventually(async () => assert.match(await card.innerText(), /\b[23] seconds to answer/));
  await page.clock.runFor(2_000);
  await gone(card);
  await eventually(async () => assert.match(await page.locator('.step').last().innerText(), /no answer in time, so no/));

  gateway.say('approval.request', { ...question, approvalId: 'a3', callId: 'c3' });
  await there(card);
  finish(gateway);
  await gone(card);
  assert.deepEqual(gateway.of('approval.answer'), []);
  await shown.idleAgain();
});

test('a lost connection, and a page that is loaded again: what was shown is shown, what was answered is not asked', async (t) => {
  const met = await meet(t, browser, vela, { expected: brokenSocket });
  const { page, gateway, shown } = met;
  await begin(met, 'first');
  gateway.say('thinking.delta', { text: 'hm' });
  gateway.say('tool.call', { callId: 'c1', name: 'bash', input: { command: 'ls' } });
  gateway.say('approval.request', question);
  const card = page.locator('.ask');
  await there(card);
  await page.keyboard.press('Alt+y');
  await eventually(() => assert.equal(gateway.of('approval.answer').length, 1));
  gateway.say('tool.result', { callId: 'c1', name: 'bash', success: true, output: { content: 'a' } });
  gateway.say('artifact', artifacts.code);
  gateway.say('response.text.delta', { text: 'There is a.' });
  finish(gateway);
  await shown.idleAgain();
  await begin(met, 'second', 2);
  gateway.say('tool.call', { callId: 'c2', name: 'bash', input: { command: 'rm a' } });
  gateway.say('approval.request', { ...question, approvalId: 'a2', callId: 'c2' });
  await there(card);
  const all = async () => ({
    turns: await shown.conversation(),
    steps: (await page.locator('.step').allInnerTexts()).map((s) => s.replace(/\s+/g, ' ').replace(/, \d+ ms/, '').replace(/, (waits for you|you allowed it|you said no)/, '')),
    tabs: await page.getByRole('tab').allInnerTexts(),
    thoughts: await page.locator('.thought').count(),
    usage: await page.locator('.usage').allInnerTexts(),
    asked: await card.count(),
  });
  const before = await all();
  assert.deepEqual(before.turns.map(([[, said]]) => said), ['first', 'second']);
  assert.deepEqual([before.asked, before.tabs, before.usage], [1, ['cancel_test.go'], ['1,204 tokens in, 88 out']]);
  gateway.cut();
  await eventually(async () => assert.equal(gateway.of('session.resume').length, 1));
  await eventually(async () => assert.equal(await shown.session(), 'thinking'));
  await eventually(async () => assert.deepEqual(await all(), before));
  await page.reload();
  await eventually(async () => assert.deepEqual(await all(), before));
  await page.keyboard.press('Alt+n');
  await eventually(() => assert.deepEqual(gateway.of('approval.answer').at(-1), { approvalId: 'a2', allow: false }));
  await page.reload();
  await eventually(async () => assert.deepEqual(await all(), { ...before, asked: 0 }));
});

test('what an agent sends is text, however hostile and however long, and the page goes on', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway, shown } = met;
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
  const turned = '\u202Eexe.gnp\u202C';
  await begin(met, `${evil}${turned}`);
  gateway.say('thinking.delta', { text: evil });
  use(gateway, 'c1', evil, { path: `${turned}${evil}` }, { content: evil });
  const huge = `${'x'.repeat(79)}\n`.repeat(3277); // 256 KiB
  const one = 'y'.repeat(256 * 1024);
  const long = evil.repeat(4000);
  gateway.say('artifact', { ...artifacts.code, title: evil, file: turned, content: evil });
  gateway.say('artifact', { ...artifacts.error, title: 'bad', message: evil + turned });
  gateway.say('artifact', { ...artifacts.markdown, title: 'prose', content: `# ${evil}\n\n[x](javascript:1)\n\n${long}` });
  gateway.say('artifact', { ...artifacts.diff, title: 'diff', file: evil, diff: `@@ -1 +1 @@\n${`+${evil}\n`.repeat(3000)}` });
  gateway.say('artifact', { ...artifacts.code, title: 'one line', content: one });
  gateway.say('artifact', { ...artifacts.code, title: 'huge', content: huge });
  await there(page.getByRole('tab'), 6);
  const panel = page.locator('#artifact-panel');
  const length = async () => (await panel.evaluate((e) => [...e.querySelectorAll('.lines')].map((l) => l.textContent).join('\n'))).length;
  await eventually(async () => assert.equal(await length(), huge.length - 1));
  assert.ok((await panel.evaluate((e) => e.querySelectorAll('*').length)) < 2000, 'a quarter of a megabyte is drawn node by node');
  for (const name of ['one line', 'diff', 'prose', 'bad']) {
    await page.getByRole('tab', { name, exact: true }).click();
    await eventually(async () => assert.equal(await page.getByRole('tab', { selected: true }).innerText(), name));
  }
  await eventually(async () => assert.equal(await panel.innerText(), `${evil}⟨U+202E⟩exe.gnp⟨U+202C⟩`));
  gateway.say('approval.request', { ...question, name: turned, summary: `${evil}${turned}` });
  await shows(page.locator('.ask .summary'), `${evil}⟨U+202E⟩exe.gnp⟨U+202C⟩`);
  await shows(page.locator('.ask h3'), 'May it use ⟨U+202E⟩exe.gnp⟨U+202C⟩?');
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('#app img, #app script').count(), 0);
  gateway.say('response.text.delta', { text: evil });
  finish(gateway);
  await shown.idleAgain();
  assert.equal((await shown.conversation())[0][1][1], evil);
});

test('the transcript has the tools, and the conversation its sum', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway, shown } = met;
  for (const n of [1, 2]) {
    await begin(met, `question ${n}`, n);
    use(gateway, `c${n}`, 'bash', { command: 'go vet' }, { content: 'x' }, n === 1);
    gateway.say('response.text.delta', { text: 'answer' });
    finish(gateway, n);
    await shown.idleAgain();
  }
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#save-transcript').click()]);
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  assert.match(text, /\*\*Claude in the project\*\*\n\n- `bash` `go vet`\n\n> answer/);
  assert.match(text, /- `bash` `go vet` \(failed\)/);
  await page.getByRole('button', { name: 'Settings' }).click();
  await shows(page.locator('#spent'), '2,408 tokens in, 176 out, in this conversation');
});

/** What is wider than its place, besides the strip of tabs, which is there to be moved. */
const wide = async (page) => (await sideways(page)).filter((w) => !w.startsWith('artifact-'));

for (const viewport of [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
  { width: 320, height: 568 },
]) {
  test(`${viewport.width}x${viewport.height}: a turn with everything on it, in light and dark`, async (t) => {
    const phone = viewport.width <= 720;
    const met = await meet(t, browser, vela, { viewport, reducedMotion: 'reduce', ...(phone && { hasTouch: true, isMobile: true }) });
    const { page, gateway, shown } = met;
    const look = async (name) => {
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        const what = `${name}, ${colorScheme}`;
        assert.deepEqual(await wide(page), [], what);
        assert.deepEqual(await faint(page), [], what);
        assert.deepEqual(await barriers(page), [], what);
        await picture(page, `agents-${viewport.width}x${viewport.height}-${name}-${colorScheme}`);
      }
      assert.deepEqual(await unexplained(page), [], name);
    };
    if (phone) {
      assert.doesNotMatch(await page.locator('.empty').innerText(), /Space/);
      const apart = await page.evaluate(() => {
        const sail = document.querySelector('.empty .sail').getBoundingClientRect();
        return sail.height === 0 || sail.bottom <= document.querySelector('.empty h2').getBoundingClientRect().top;
      });
      assert.ok(apart, 'the sail touches the heading');
    }
    await look('empty');
    await begin(met);
    gateway.say('thinking.delta', { text: 'The machine is stepped under the context of the turn.' });
    use(gateway, 'c1', 'grep', { pattern: 'evCancel' });
    use(gateway, 'c2', 'bash', { command: 'go test -race ./session -run TestCancel -count 100' }, { content: 'exit status 1' }, false);
    for (const kind of Object.keys(artifacts)) gateway.say('artifact', artifacts[kind]);
    gateway.say('session.state', { value: 'speaking' });
    gateway.say('response.text.delta', { text: 'It runs under the context of the turn, which is already cancelled. I can detach it.' });
    gateway.say('tool.call', { callId: 'c3', name: 'edit_file', input: { file_path: 'session/fsm.go' } });
    gateway.say('status', { type: 'status', action: 'editing_file', detail: '/home/me/project/session/fsm.go' });
    await there(page.locator('#status'));
    await look('working');
    gateway.say('approval.request', { ...question, callId: 'c3', name: 'edit_file', summary: 'session/fsm.go: 5 lines more, 2 lines less' });
    await there(page.locator('.ask'));
    await look('asked');
    for (const part of ['.ask h3', '.ask .summary', '.ask .answers']) {
      const inside = await page.locator(part).evaluate((e) => {
        const { top, bottom } = e.getBoundingClientRect();
        const place = document.getElementById('conversation').getBoundingClientRect();
        return top >= place.top - 1 && bottom <= place.bottom + 1;
      });
      assert.ok(inside, `${part} is out of sight`);
    }
    await page.getByRole('button', { name: /^Allow/ }).click();
    gateway.say('tool.result', { callId: 'c3', name: 'edit_file', success: true });
    finish(gateway);
    await shown.idleAgain();
    if (phone) {
      assert.equal(await page.locator('#artifacts').count(), 0, 'the sheet came by itself');
      await page.locator('#open-artifacts-pad').click();
    }
    await there(page.locator('#artifacts'));
    const [panel, helm] = await Promise.all(['#artifacts', '.helm'].map((s) => page.locator(s).boundingBox()));
    if (phone) assert.ok(panel.y + panel.height <= helm.y + 1, 'the sheet covers the helm');
    else assert.ok(panel.x >= helm.x + helm.width - 1, 'the artifacts are not beside the conversation');
    for (const kind of ['Edit: fsm.go', 'cancel_test.go', 'evCancel', 'README.md', 'bash']) {
      await page.getByRole('tab', { name: kind }).click();
      await look(kind.replace(/\W+/g, '-'));
    }
    if (phone) {
      await page.keyboard.press('Escape');
      await gone(page.locator('#artifacts'));
      await eventually(async () => assert.equal(await focused(page), 'open-artifacts-pad'));
    }
  });
}

test('a long partial begins with a whole line, at every width', async (t) => {
  for (const viewport of [
    { width: 320, height: 568 },
    { width: 390, height: 844 },
    { width: 1280, height: 800 },
  ]) {
    const met = await meet(t, browser, vela, { viewport });
    const { page, gateway } = met;
    await begin(met);
    gateway.say('transcript.partial', { text: `${'so many words that they do not fit into the few lines there are for them '.repeat(5)}end` });
    const cut = await eventually(async () => {
      const lines = await page.locator('#partial').evaluate((e) => {
        const place = e.closest('.words').getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(e);
        return [...range.getClientRects()].map(({ top, bottom }) => [top - place.top, bottom - place.top, place.height]);
      });
      assert.ok(lines.length > 3);
      return lines.filter(([top, bottom]) => bottom > 3 && top < -3);
    });
    assert.deepEqual(cut, [], `${viewport.width}: a line is cut`);
  }
});
