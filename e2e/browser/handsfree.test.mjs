// Talking with nothing held: the microphone is open, and speech over an answer stops it. Both ends are measured on one clock, in samples.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after as atEnd, before, test } from 'node:test';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, startBrowser } from './lib/browser.mjs';
import { barriers, faint, picture, sideways, unexplained } from './lib/looks.mjs';
import { ask, compare, exactly, fits, forget, heardFromNowOn, heardToItsEnd, historyOf, output, over, played, saidByThen, saidInTime, visitSpoken } from './lib/output.mjs';
import { after, cough, hum, inRoom, quiet, record, voice } from './lib/speech.mjs';
import { meet } from './lib/standin.mjs';
import { startVela, startVelaWith, toneVoice } from './lib/vela.mjs';

const said = 'one two three four five six seven eight nine ten';
const long = `${said} ${said} ${said} ${said}`; // about ten seconds

let vela, toned;
before(async () => ([vela, toned] = await Promise.all([startVela(), startVelaWith(toneVoice)])));
atEnd(() => Promise.all([vela?.stop(), toned?.stop()]));

/** A page that listens by itself, whose microphone hears this from now on, over and over. */
async function live(t, microphone, { gateway = vela, init = [], ...options } = {}) {
  const browser = await startBrowser({ microphone: microphone.file });
  afterwards(t, () => browser.close());
  const visited = await visitSpoken(t, browser, gateway, { init: [exactly, ...init], ...options });
  const { page, shown } = visited;
  await page.getByRole('switch', { name: 'Hands-free' }).click();
  await eventually(async () => assert.match(await shown.title(), /^(Just talk|Listening)$/)); // it may hear something already
  return visited;
}

/** When the microphone heard something for the first time after half a second in which it did not, in s of the output's clock. */
function onset(microphone) {
  const loud = microphone.filter(({ level }) => level > 0.02);
  return loud.find(({ at }, i) => at - (loud[i - 1]?.at ?? 0) > 0.5)?.at;
}

test('speech in the middle of an answer: silence within 600 ms, and the answer is what was heard of it', async (t) => {
  const { page, shown, proxy, wire } = await live(t, record(quiet(6), voice('please stop that now'), quiet(4)), { gateway: toned });
  let best = Infinity;
  // What else the machine does can only add to it, so one of a few has to be in time. All else holds of each.
  for (let n = 1; n <= 5 && best > 600; n++) {
    await shown.idleAgain();
    const before = wire.events.length;
    await forget(page);
    await ask(page, long);
    const [id, next] = await eventually(() => {
      const asked = wire.events.findIndex(({ type, payload }, i) => i >= before && type === 'transcript.final' && payload.text === long);
      const answer = wire.events.find(({ type }, i) => asked >= 0 && i > asked && type === 'response.created');
      assert.ok(answer, 'it is not answered');
      const number = Number(answer.payload.responseId.slice(1));
      return [`r${number}`, `r${number + 1}`];
    }, 60_000);
    const cancelled = await over(wire, 'response.cancelled', id);
    assert.equal(cancelled.reason, 'barge_in');
    if (n === 1) await picture(page, 'handsfree-interrupted');
    await over(wire, 'response.completed', next);
    await shown.idleAgain();
    const { frames } = await output(page);
    const reached = compare(frames, wire, id);
    const { ms, end, pauses } = reached;
    if (ms < 1000) continue; // the microphone hears the words at its own times: they came before the middle
    assert.equal(pauses, 0, 'it went on in between');
    // Behind the quantum that fades there is the next answer, all of it, and nothing else.
    const after = [end, end + 1].map((from) => compare(frames.slice(from), wire, next)).find(({ foreign }) => foreign === 0);
    assert.equal(after?.left, 0, 'something else was heard');
    const spoken = onset(await page.evaluate(() => output.microphone));
    const silent = frames[Math.min(end, frames.length - 1)].at + 128 / 24000;
    best = Math.min(best, 1000 * (silent - spoken));
    t.diagnostic(`silent ${Math.round(1000 * (silent - spoken))} ms after the first sound of speech`);
    const told = (await historyOf(proxy, wire)).filter(({ role }) => role === 'assistant').at(-2);
    assert.equal(told.heardText, (await over(wire, 'response.cancelled', id)).heardText);
    fits(told.heardText, `You said: ${long}`, reached, saidInTime(proxy, wire, id));
    const [[, heard, ahead], [user]] = (await shown.conversation()).slice(-2);
    assert.equal(heard[1] + ahead[1], `You said: ${long}`);
    fits(heard[1], `You said: ${long}`, reached, saidByThen(wire, id));
    assert.match(user[1], /stop/);
  }
  assert.ok(best <= 600, `it was heard for ${best} ms`);
});

/** Stands for a recogniser of the kind that makes no words of noise: it hears none in anything. */
async function hearsNothing(t) {
  const server = createServer((request, response) => request.resume().on('end', () => response.end('{"text": ""}')));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  afterwards(t, () => server.close());
  return `ears: [{kind: openai, model: none, url: "http://127.0.0.1:${server.address().port}/v1"}]\n`;
}

// The second gateway takes much for speech that is none, and hears some of which no words are made, so that the answer is held for it, and let go of again. What PocketSphinx
// makes of such sounds is at times a word, which would be an interruption.
for (const [name, vad, least] of [
  ['as it is set', null, 0],
  ['set to be easily alarmed', 'vad: {threshold: 0.3, speech: 100ms}', 1],
]) {
  test(`a cough, a throat that is cleared, a noisy room, before a gateway ${name}: the answer is heard to its end, every sample of it once`, async (t) => {
    const gateway = vad ? await startVelaWith(`${vad}\n${await hearsNothing(t)}`) : vela;
    if (vad) afterwards(t, () => gateway.stop());
    // Whether a browser lets the noises through is its own affair: speech, of which no words are made, is sure to be held for.
    const speech = vad ? [voice('never mind'), quiet(2)] : [];
    const noises = after(quiet(3), cough(), quiet(2), hum(0.4), quiet(1.5), ...speech, hum(0.4), quiet(1.5), cough(0.4), quiet(1.5), hum(0.4), quiet(3));
    const { page, shown, proxy, wire } = await live(t, record(inRoom(noises)), { gateway });
    let held = 0;
    let answers = 0;
    // A machine that is held up hears less of the noises: there are several answers for them to come over.
    do {
      const id = `r${++answers}`;
      await forget(page);
      await ask(page, long);
      await over(wire, 'response.completed', id);
      await shown.idleAgain();
      // A page that is held up plays the last of it, and says so, when the gateway has waited long enough.
      held += await eventually(async () => {
        const { foreign, left, pauses } = compare((await output(page)).frames, wire, id);
        assert.deepEqual({ foreign, left }, { foreign: 0, left: 0 });
        return pauses;
      });
      await heardToItsEnd(proxy, wire, id, `You said: ${long}`);
    } while (held < least && answers < 4);
    t.diagnostic(`it was held ${held} times`);
    assert.ok(held >= least, `it was held ${held} times`);
    assert.equal((await shown.conversation()).length, answers);
    assert.ok((await page.evaluate(() => output.microphone.length)) > 100, 'the microphone heard nothing');
  });
}

/** Goes through all that the helm can say of it, and stops as long as `look` takes. */
async function through(met, look) {
  const { page, gateway, shown } = met;
  const titled = (title) => eventually(async () => assert.equal(await shown.title(), title));
  await titled('Just talk');
  await look('just talk');
  gateway.say('session.state', { value: 'listening' });
  await titled('Listening');
  await look('listening');
  gateway.say('transcript.partial', { text: 'why does a cancelled turn', itemId: 'i1' });
  await eventually(async () => assert.equal(await shown.partial.innerText(), 'why does a cancelled turn'));
  await look('words');
  gateway.say('transcript.final', { text: 'why does a cancelled turn stay in thinking', itemId: 'i1' });
  gateway.say('session.state', { value: 'thinking' });
  gateway.say('response.created', { responseId: 'r1', turnId: 't1' });
  await titled('Working on it');
  await look('thinking');
  gateway.say('session.state', { value: 'speaking' });
  gateway.say('response.text.delta', { text: 'The step that ends it uses a context that is cancelled by then.', responseId: 'r1' });
  await titled('Answering');
  await look('answering');
  gateway.say('session.state', { value: 'listening' });
  await titled('The answer waits');
  await look('waits');
  gateway.say('transcript.final', { text: '', itemId: 'i2' });
  gateway.say('session.state', { value: 'speaking' });
  await titled('Answering');
  gateway.say('response.completed', { responseId: 'r1', heardText: 'The step that ends it uses a context that is cancelled by then.' });
  gateway.say('turn.metrics', { turnId: 't1', sttMs: 186, firstTokenMs: 418, firstAudioMs: 540, gatewayMs: 4, totalMs: 2900 });
  gateway.say('session.state', { value: 'idle' });
  await titled('Just talk');
  await look('answered');
  // On a phone it is one line, until somebody wants to see more.
  const stages = page.locator('.waterfall .stages');
  if (!(await stages.isVisible())) await page.locator('.waterfall summary').click();
  assert.equal(await stages.isVisible(), true);
  assert.match(await stages.getAttribute('aria-label'), /Recognise after 186 milliseconds, First word after 604 .* First sound after 726/);
  assert.match(await page.locator('.waterfall .key').innerText(), /^Vela itself 4 ms, the whole turn 2\.90 s\./);
  await eventually(async () => {
    const [key, helm] = await page.evaluate(() => ['.waterfall .key', '.helm'].map((s) => document.querySelector(s).getBoundingClientRect()));
    assert.ok(key.bottom <= helm.top, 'it is out of sight');
  });
  await look('stages');
  await shown.talk.click();
  await titled('Listening is paused');
  await look('paused');
}

test('an output that has nothing to play sleeps, and wakes for the first sample of an answer; a page that goes closes it', async (t) => {
  const browser = await startBrowser();
  afterwards(t, () => browser.close());
  // The page's own clock stands but where it is moved; that of the output does not.
  const { page, shown, wire } = await visitSpoken(t, browser, vela, { init: [exactly], clock: true });
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 3_600_000);
  const sound = () => page.evaluate(() => output.context.state);
  const heardWhole = (id) =>
    eventually(async () => {
      await page.clock.runFor(20);
      assert.ok(wire.events.some((e) => e.type === 'response.completed' && e.payload.responseId === id));
      const { foreign, left } = compare((await output(page)).frames, wire, id);
      assert.deepEqual({ foreign, left }, { foreign: 0, left: 0 });
      assert.equal(await shown.session(), 'idle');
    }, 60_000);
  await heardFromNowOn(page);
  await ask(page, 'one two three');
  await heardWhole('r1');
  assert.equal(await sound(), 'running');
  await page.clock.runFor(9_000);
  assert.equal(await sound(), 'running');
  await eventually(async () => {
    await page.clock.runFor(1_000);
    assert.equal(await sound(), 'suspended');
  });
  await forget(page);
  // Nobody presses anything: the question comes from elsewhere.
  await page.evaluate(() => seen.sockets.at(-1).send(JSON.stringify({ type: 'input_text.submit', payload: { text: 'four five six' }, id: 'test' })));
  await heardWhole('r2');
  await page.evaluate(() => window.dispatchEvent(new PageTransitionEvent('pagehide')));
  await eventually(async () => assert.equal(await sound(), 'closed'));
});

test('how readily it hears is chosen with the keyboard, holds for the gateway, and is remembered', async (t) => {
  const browser = await startBrowser({ microphone: record(quiet(10)).file });
  afterwards(t, () => browser.close());
  const { page, proxy, shown } = await visitSpoken(t, browser, vela);
  const settings = () => page.getByRole('button', { name: 'Settings' }).click();
  const asked = () => proxy.sent.map((m) => (typeof m === 'string' ? JSON.parse(m) : {})).findLast(({ type }) => type === 'session.start').payload;
  await settings();
  await page.getByRole('radiogroup', { name: 'Hands-free hears' }).getByRole('radio', { checked: true }).focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.getByRole('radio', { name: 'Clear only' }).getAttribute('aria-checked'), 'true');
  await page.getByRole('dialog').getByRole('switch', { name: 'Hands-free' }).click();
  await eventually(() => assert.deepEqual(asked(), { turnDetection: 'vad', vad: { threshold: 0.7 } }));
  await page.getByRole('radio', { name: '1.2 s' }).click();
  await eventually(() => assert.deepEqual(asked(), { turnDetection: 'vad', vad: { threshold: 0.7, silenceMs: 1200 } }));
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await shown.title(), 'Just talk'));
  await page.reload();
  await settings();
  assert.equal(await page.getByRole('radio', { name: '1.2 s' }).getAttribute('aria-checked'), 'true');
});

test('how it looks and is read aloud, at every size: nothing moves, everything has contrast, and what is off says why', async (t) => {
  const browser = await startBrowser({ microphone: record(quiet(0.3), hum(0.5), quiet(0.4), voice('harbour')).file });
  afterwards(t, () => browser.close());
  for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }, { width: 320, height: 640 }]) {
    const met = await meet(t, browser, vela, { viewport });
    const { page } = met;
    if (viewport.width > 720) await page.getByRole('switch', { name: 'Hands-free' }).click();
    else {
      await page.getByRole('button', { name: 'Settings' }).click();
      const control = page.getByRole('dialog').getByRole('switch', { name: 'Hands-free' });
      await control.click();
      assert.equal(await control.getAttribute('aria-checked'), 'true');
      await picture(page, `handsfree-${viewport.width}-settings`);
      await page.keyboard.press('Escape');
    }
    const boxes = new Map();
    await through(met, async (state) => {
      boxes.set(state, await page.evaluate(() => ['.helm', '.ring'].map((s) => JSON.stringify(document.querySelector(s).getBoundingClientRect()))));
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        assert.deepEqual(await sideways(page), [], `${viewport.width}, ${state}`);
        assert.deepEqual(await faint(page), [], `${viewport.width}, ${state}, ${colorScheme}`);
      }
      assert.deepEqual(await unexplained(page), [], `${viewport.width}, ${state}`);
      assert.deepEqual(await barriers(page), [], `${viewport.width}, ${state}`);
      await picture(page, `handsfree-${viewport.width}-${state.replaceAll(' ', '-')}`);
    });
    for (const [state, [helm, ring]] of boxes) {
      assert.equal(ring, boxes.get('just talk')[1], `${viewport.width}: the control moved while ${state}`);
      if (viewport.width > 720) assert.equal(helm, boxes.get('just talk')[0], `the helm changed while ${state}`);
    }
  }
});
