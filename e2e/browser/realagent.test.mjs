// The page before real agents: the built program, models behind both vendors' formats, tools that work on real files.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, startBrowser } from './lib/browser.mjs';
import { barriers, faint, picture, sideways, unexplained } from './lib/looks.mjs';
import { modelAgent, startAgents, startModels } from './lib/models.mjs';
import { brokenSocket, visit } from './lib/page.mjs';
import { speak } from './lib/speech.mjs';

const sentence = 'this is a test';
const story = 'Once upon a time, in a land far away, there lived a very old sailor who talked and talked and never came to an end.';

let browser, models, vela, microphone;
before(async () => {
  microphone = speak(sentence);
  [browser, models] = await Promise.all([startBrowser({ microphone: microphone.file }), startModels()]);
  vela = await startAgents([
    modelAgent('sailor', 'openai', models, 'label: Sailor, tools: {root: project}'),
    modelAgent('pilot', 'anthropic', models, 'label: Pilot, tools: {root: project}'),
    modelAgent('quiet', 'openai', models, 'label: Quiet, ponder: [Reading the sky, Still reading it]'),
    'ashore: {kind: anthropic, label: Ashore, model: m, key_env: BROWSER_NO_KEY}',
  ]);
});
after(async () => {
  await Promise.all([browser?.close(), vela?.stop()]);
  await models?.stop();
});

/** A page whose agent is `agent`. */
const meet = (t, agent = 'sailor', options) =>
  visit(t, browser, vela, { turns: 'agent', init: [`localStorage.setItem('vela.agent', '${agent}')`], ...options });

const plain = (text) => text.replace(/\s+/g, ' ').trim();
const shows = (locator, text) => eventually(async () => assert.equal(plain(await locator.innerText()), text));
const gone = (locator) => eventually(async () => assert.equal(await locator.count(), 0));
const there = (locator, n = 1) => eventually(async () => assert.equal(await locator.count(), n));
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.className);
const steps = async (page) => (await page.locator('.step summary').allInnerTexts()).map((row) => plain(row).replace(/, [\d,]+ ms/, ''));
const given = (proxy, type) => proxy.given.map((m) => JSON.parse(m)).filter((m) => m.type === type);

async function type(page, words) {
  await page.locator('#type').fill(words);
  await page.locator('#type').press('Enter');
}

/** Waits until the last turn is these words and their answer. */
async function answered(shown, said, answer) {
  await eventually(async () => assert.deepEqual((await shown.conversation()).at(-1), [['user', said], ['agent', answer]]));
  await shown.idleAgain();
}

/** The same for what was spoken: how often the sentence fits into a hold, the microphone says. */
async function heard(shown, answer) {
  await eventually(async () => {
    const [user, agent] = (await shown.conversation()).at(-1);
    assert.match(user[1], new RegExp(sentence));
    assert.deepEqual(agent, ['agent', answer]);
  });
  await shown.idleAgain();
}

/** Types for the story, and lets it come as far as "in a land". */
async function halfAStory({ page, shown }) {
  models.holdFrom((event) => event.includes('far away'));
  await type(page, 'Tell me a long story.');
  await eventually(() => assert.equal(models.held(), 1));
  const half = await eventually(async () => {
    const text = (await shown.conversation()).at(-1)?.[1]?.[1] ?? '';
    assert.match(text, /time/);
    return text;
  });
  assert.ok(story.startsWith(half) && half !== story, half);
  assert.equal(await shown.session(), 'speaking');
  return half;
}

async function openMicrophone(shown) {
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
}

/** Holds the control until the sentence was recognised, and lets go. */
async function say(shown) {
  await shown.press();
  await eventually(async () => assert.match(await shown.partial.innerText(), new RegExp(sentence)));
  await shown.release();
}

for (const [agent, label] of [
  ['sailor', 'Sailor'],
  ['pilot', 'Pilot'],
]) {
  test(`${agent}: spoken words are recognised, answered from a file, and the page shows how`, async (t) => {
    const { page, shown, proxy } = await meet(t, agent);
    await shows(page.locator('#agent-choice'), label);
    await openMicrophone(shown);
    await say(shown);
    await heard(shown, 'It is half past nine.');
    assert.equal(plain(await page.locator('.side.agent .who').innerText()), label);
    assert.deepEqual(await steps(page), ['read_file notes/clock.txt done']);
    assert.ok((await shown.states('status')).includes('Reading notes/clock.txt'), 'no status line');
    await gone(page.locator('#status'));
    await shows(page.getByRole('tab', { selected: true }), 'clock.txt');
    assert.match(await page.getByRole('tabpanel').innerText(), /half past nine/);
    assert.deepEqual(await shown.states('session'), ['none', 'idle', 'listening', 'thinking', 'speaking', 'idle']);
    assert.deepEqual(given(proxy, 'session.ready').at(-1).payload.agent, agent);
    await page.locator('.step summary').click();
    await shows(page.getByRole('region', { name: 'What came out' }), 'path: notes/clock.txt content: half past nine');
  });
}

test('a change is allowed by keyboard alone, made, and shown', async (t) => {
  const { page, shown } = await meet(t);
  await page.locator('#type').focus();
  await page.keyboard.type('Write sun where it says fog.');
  await page.keyboard.press('Enter');
  await there(page.locator('.ask'));
  await eventually(async () => assert.equal(await focused(page), 'ask'));
  await shows(page.locator('.ask .summary'), 'Edit allowed.txt: 1 line for 1');
  for (const stray of [' ', 'Enter', 'y']) await page.keyboard.press(stray);
  for (let i = 0; i < 3; i++) await page.keyboard.press('Tab');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^Allow/);
  await page.keyboard.press(' ');
  assert.equal(await page.locator('.ask').count(), 1, 'Space answered');
  assert.equal(vela.file('allowed.txt'), 'The weather is fog.\n');
  await page.keyboard.press('Enter');
  await answered(shown, 'Write sun where it says fog.', 'It is sunny now.');
  assert.equal(vela.file('allowed.txt'), 'The weather is sun.\n');
  assert.deepEqual(await steps(page), ['edit_file allowed.txt done, you allowed it']);
  await shows(page.getByRole('tab', { selected: true }), 'Edit: allowed.txt');
  const panel = plain(await page.getByRole('tabpanel').innerText());
  assert.match(panel, /-\s*The weather is fog\./);
  assert.match(panel, /\+\s*The weather is sun\./);
});

test('a change that is denied is not made, and the agent knows', async (t) => {
  const { page, shown } = await meet(t, 'pilot');
  await type(page, 'Write rain where it says fog.');
  await there(page.locator('.ask'));
  await page.keyboard.press('Alt+n');
  await answered(shown, 'Write rain where it says fog.', 'Then it stays foggy.');
  assert.equal(vela.file('refused.txt'), 'The weather is fog.\n');
  assert.deepEqual(await steps(page), ['edit_file refused.txt failed, you said no']);
});

test('a hold while the answer streams interrupts it: what was shown stays, the model is let go of and knows', async (t) => {
  const visited = await meet(t);
  const { page, shown, proxy } = visited;
  afterwards(t, () => models.pass());
  await openMicrophone(shown);
  const half = await halfAStory(visited);
  assert.equal(await shown.small(), 'Hold to interrupt');
  await shown.press();
  await eventually(async () => assert.equal(await shown.session(), 'listening'));
  await eventually(() => assert.equal(models.held(), 0));
  models.pass();
  await shows(page.locator('[data-turn] .cut'), 'you interrupted');
  const [cancelled] = given(proxy, 'response.cancelled');
  assert.deepEqual([cancelled.payload.reason, cancelled.payload.heardText], ['barge_in', half]);
  assert.equal(proxy.done.filter((d) => d === 'response.cancel').length, 0);
  await eventually(async () => assert.match(await shown.partial.innerText(), new RegExp(sentence)));
  await shown.release();
  await heard(shown, 'It is half past nine.');
  assert.deepEqual((await shown.conversation())[0], [['user', 'Tell me a long story.'], ['agent', half]]);
  const [request] = (await models.asked(sentence)).filter((messages) => messages.some((m) => m.content === 'Tell me a long story.'));
  assert.equal(request.find((m) => m.role === 'assistant').content, `${half}\n[interrupted: this is all that the user heard]`);
});

test('a connection cut in the middle of an answer: the session is kept, and the whole answer is there once', async (t) => {
  const visited = await meet(t, 'sailor', { expected: brokenSocket });
  const { page, shown, proxy } = visited;
  afterwards(t, () => models.pass());
  const half = await halfAStory(visited);
  await shown.forget();
  proxy.handshake = 'wait';
  proxy.cut();
  await eventually(async () => assert.equal(await shown.sessionWord(), 'Kept'));
  const lost = await eventually(async () => {
    const state = (await shown.seen('states')).find(({ banner }) => banner !== '');
    assert.ok(state, 'no banner');
    return state;
  });
  assert.match(lost.banner, /^Connection lost\. Trying again in \d+ s\. The session is kept for [12]:\d\d\.$/);
  assert.deepEqual([lost.action, lost.session], ['Try now', 'kept']);
  assert.equal(lost.small, 'What was said stays here. The conversation goes on where it was.');
  assert.deepEqual([lost.talk, lost.mocked, lost.stop], [false, false, false]);
  assert.deepEqual(await shown.conversation(), [[['user', 'Tell me a long story.'], ['agent', half]]]);
  proxy.handshake = 'pass';
  // The answer still waits for its model: it is taken up in its middle.
  await eventually(async () => assert.equal(await shown.session(), 'speaking'));
  assert.deepEqual(await shown.conversation(), [[['user', 'Tell me a long story.'], ['agent', half]]]);
  assert.equal(models.held(), 1);
  models.pass();
  await answered(shown, 'Tell me a long story.', story);
  await shown.noBanner();
  assert.equal(await page.locator('.cut').count(), 0);
  assert.equal(proxy.done.filter((d) => d === 'session.start').length, 1);
  assert.ok(proxy.done.includes('session.resume'));
  const seqs = proxy.given.map((m) => JSON.parse(m).seq).filter((s) => s !== undefined);
  assert.deepEqual(seqs, seqs.map((_, i) => seqs[0] + i), 'an event was lost or doubled');
  await type(page, 'Where were we?');
  await answered(shown, 'Where were we?', 'In a land far away.');
  assert.equal((await shown.conversation()).length, 2);
});

test('a page that is loaded again in the middle of an answer has all of it once', async (t) => {
  const visited = await meet(t, 'pilot', { expected: brokenSocket });
  const { page, shown, proxy } = visited;
  afterwards(t, () => models.pass());
  await type(page, 'And now?');
  await answered(shown, 'And now?', 'Now I am whole.');
  const half = await halfAStory(visited);
  const before = given(proxy, 'session.ready').at(-1).payload.sessionId;
  await page.reload();
  await eventually(async () => assert.deepEqual((await shown.conversation()).at(-1), [['user', 'Tell me a long story.'], ['agent', half]]));
  assert.equal(await shown.session(), 'speaking');
  assert.equal(await shown.stop.isEnabled(), true);
  models.pass();
  await answered(shown, 'Tell me a long story.', story);
  assert.deepEqual((await shown.conversation())[0], [['user', 'And now?'], ['agent', 'Now I am whole.']]);
  assert.equal((await shown.conversation()).length, 2);
  assert.equal(given(proxy, 'session.ready').at(-1).payload.sessionId, before);
});

test('another agent is chosen by keyboard and answers with what was said before; one that is not there says why', async (t) => {
  const { page, shown, proxy } = await meet(t);
  await type(page, 'And now?');
  await answered(shown, 'And now?', 'Now I am whole.');
  const choice = page.locator('#agent-choice');
  await choice.focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('End');
  const last = page.getByRole('option').last();
  assert.equal(
    plain(await last.innerText()),
    "Ashore Not there: An environment variable that vela.yaml names for a key is not set. Set it and start the gateway again.",
  );
  await page.keyboard.press('Enter');
  assert.equal(given(proxy, 'session.ready').length, 1, 'one that is not there was chosen');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await shows(choice, 'Pilot');
  await type(page, 'Say it once more.');
  await answered(shown, 'Say it once more.', 'Hello, again.');
  assert.deepEqual(await page.locator('.side.agent .who').allInnerTexts(), ['Sailor', 'Pilot']);
  const [request] = (await models.asked('Say it once more.')).slice(-1);
  assert.ok(request.some((m) => m.content === 'Now I am whole.'), 'it does not know what was said before');
});

test('an agent that fails says so in the banner, and the session goes on', async (t) => {
  for (const agent of ['sailor', 'pilot']) {
    const { page, shown, proxy } = await meet(t, agent);
    await type(page, 'Come back next week.');
    await eventually(async () => assert.match(await shown.bannerWords(), /^(Sailor|Pilot) /));
    await picture(page, `realagent-failed-${agent}`);
    const [error] = given(proxy, 'error');
    assert.equal(error.payload.code, 'agent_unavailable');
    assert.equal(await shown.bannerWords(), `${agent === 'sailor' ? 'Sailor' : 'Pilot'} is not there. The model has too many requests. Try again later.`);
    assert.equal(await page.locator('[data-turn] .cut').innerText(), 'the answer broke off');
    await shown.idleAgain();
    await type(page, 'And now?');
    await answered(shown, 'And now?', 'Now I am whole.');
    await shown.noBanner();
    assert.equal(proxy.asked.length, 1);
  }
});

test('an agent that takes its time shows a phrase for its silence, and no longer than that', async (t) => {
  const { page, shown } = await meet(t, 'quiet');
  afterwards(t, () => models.pass());
  models.holdFrom((event) => event.includes('Now I'));
  await type(page, 'And now?');
  await shows(page.locator('#status'), 'Reading the sky');
  await shows(page.locator('#status'), 'Still reading it');
  models.pass();
  await answered(shown, 'And now?', 'Now I am whole.');
  assert.equal(await page.locator('#status').count(), 0);
  const during = (await shown.states('status', 'agent')).filter(([status, agent]) => status !== '' && agent !== '');
  assert.deepEqual(during, [], 'the phrase was shown beside the answer');
});

test('what a turn took is shown, its thoughts are, and the transcript has its tools', async (t) => {
  for (const agent of ['sailor', 'pilot']) {
    const { page, shown } = await meet(t, agent);
    await type(page, 'Say hello to the crew.');
    await answered(shown, 'Say hello to the crew.', 'Hello, crew. All is well on board.');
    await shows(page.locator('.usage'), '212 tokens in, 9 out');
    await page.locator('.thought summary').click();
    await shows(page.locator('.thought p'), 'Greet them all.');
    await type(page, 'Who buys the milk?');
    await answered(shown, 'Who buys the milk?', 'Let me look.\nAnna buys it.');
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#save-transcript').click()]);
    const text = readFileSync(await download.path(), 'utf8');
    const who = agent === 'sailor' ? 'Sailor' : 'Pilot';
    assert.ok(text.endsWith(`**${who}**\n\n- \`grep\` \`milk\`\n- \`read_file\` \`notes/list.txt\`\n\n> Let me look.\n> Anna buys it.\n`), text);
    await page.getByRole('button', { name: 'Settings' }).click();
    assert.match(await page.locator('#spent').innerText(), /^[\d,]+ tokens in, \d+ out, in this conversation$/);
  }
});

const question = 'Is the tide table right after the last high water?';
const edit = 'It was not: after the last high water it gave the first one of the same day. Now it counts on into the next.';

for (const viewport of [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]) {
  test(`${viewport.width}x${viewport.height}: a turn with thoughts, tools, a question and artifacts, in light and dark`, async (t) => {
    const phone = viewport.width <= 720;
    // Each has its own files: the change is made once.
    const own = await startAgents([modelAgent('sailor', 'openai', models, 'label: Sailor, tools: {root: project}'), modelAgent('pilot', 'anthropic', models, 'label: Pilot')]);
    afterwards(t, () => own.stop());
    const { page, shown } = await visit(t, browser, own, { turns: 'agent', viewport, reducedMotion: 'reduce', ...(phone && { hasTouch: true, isMobile: true }) });
    const look = async (name) => {
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        const what = `${name}, ${colorScheme}`;
        assert.deepEqual((await sideways(page)).filter((w) => !w.startsWith('artifact-')), [], what);
        assert.deepEqual(await faint(page), [], what);
        assert.deepEqual(await barriers(page), [], what);
        await picture(page, `realagent-${viewport.width}x${viewport.height}-${name}-${colorScheme}`);
      }
      assert.deepEqual(await unexplained(page), [], name);
    };
    if (phone) await page.getByRole('button', { name: 'Type', exact: true }).click();
    await type(page, question);
    await there(page.locator('.ask'));
    await look('asked');
    await page.getByRole('button', { name: /^Allow/ }).click();
    await answered(shown, question, `I will look at the table and the log.\n${edit}`);
    assert.match(own.file('tides.py'), /HIGH\[0\] \+ 24 \* 60/);
    assert.deepEqual(await steps(page), [
      'grep HIGH done',
      'read_file tides.py done',
      'read_file harbour.md done',
      'read_file moon.md failed',
      'edit_file tides.py done, you allowed it',
    ]);
    await look('answered');
    if (phone) await page.locator('#open-artifacts-pad').click();
    assert.deepEqual((await page.getByRole('tab').allInnerTexts()).map(plain), ['Edit: tides.py', 'Error: read_file', 'harbour.md', 'tides.py', 'Search: HIGH']);
    await page.getByRole('tab', { name: 'tides.py', exact: true }).click();
    await eventually(async () => assert.ok((await page.locator('.numbers').boundingBox()).width < 80, 'the numbers take the place of the lines'));
    for (const tab of ['Edit: tides.py', 'Error: read_file', 'harbour.md', 'tides.py', 'Search: HIGH']) {
      await page.getByRole('tab', { name: tab, exact: true }).click();
      await look(`artifact-${tab.replace(/\W+/g, '-')}`);
    }
  });
}
