// Answers that are heard: what leaves the page's audio output, and what the gateway believes of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, startBrowser } from './lib/browser.mjs';
import { picture } from './lib/looks.mjs';
import { ask, compare, exactly, fits, forget, heardFromNowOn, heardToItsEnd, historyOf, output, over, place, played, recognised, saidByThen, saidInTime, sent, visitSpoken } from './lib/output.mjs';
import { brokenSocket } from './lib/page.mjs';
import { speak } from './lib/speech.mjs';
import { startVela, startVelaWith, toneVoice } from './lib/vela.mjs';

const said = 'one two three four five six seven eight nine ten';
const answer = `You said: ${said}`;
const long = `${said} ${said} ${said} ${said}`; // so that there is something left to interrupt, however slow the machine is
const longAnswer = `You said: ${long}`;

let browser, vela, toned, microphone;
before(async () => {
  microphone = speak('this is a test', { before: 0.2 });
  [browser, vela, toned] = await Promise.all([startBrowser({ microphone: microphone.file }), startVela(), startVelaWith(toneVoice)]);
});
after(() => Promise.all([browser?.close(), vela?.stop(), toned?.stop()]));

const visitHeard = (t, { gateway = vela, ...options } = {}) => visitSpoken(t, browser, gateway, options);

/** In the page: notes whether the answer was ever shown partly as heard, while it was spoken. A test could be too slow to see it. */
function inked(answer) {
  window.inked = false;
  new MutationObserver(() => {
    const [, heard, ahead] = [...document.querySelectorAll('#conversation [data-who]')].map((e) => e.textContent);
    const speaking = document.querySelector('#session')?.dataset.state === 'speaking';
    window.inked ||= Boolean(speaking && heard && ahead && heard + ahead === answer);
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
}

for (const [name, init] of [
  ['as the browser has it', []],
  ['at 44,100 Hz', [() => (window.audioContextOptions = { sampleRate: 44100 })]],
]) {
  test(`an answer is heard, word for word: the output ${name}`, async (t) => {
    const { page, shown, proxy, wire } = await visitHeard(t, { init });
    await page.evaluate(inked, answer);
    await ask(page, said);
    await played(proxy, 'r1', 900);
    await over(wire, 'response.completed', 'r1');
    await heardToItsEnd(proxy, wire, 'r1', answer);
    await shown.idleAgain();
    assert.ok(await page.evaluate(() => window.inked), 'all of it was of one ink');
    assert.deepEqual((await shown.conversation())[0], [
      ['user', said],
      ['agent', answer],
    ]);
    assert.ok(wire.ahead <= 400, `${wire.ahead} ms were ahead of what had been acknowledged`);
    const sound = await output(page);
    const words = await recognised(vela, sound);
    const right = said.split(' ').filter((word, i, all) => new RegExp(`${all[i - 1] ?? 'said'} ${word}`).test(words));
    assert.ok(right.length >= 8, `a recogniser hears: ${words}`);
    const ms = sent(wire, 'r1').length / 24;
    const lasted = 1000 * (sound.frames.at(-1).at - sound.frames[0].at);
    assert.ok(lasted > ms - 400, `${ms} ms took ${lasted}`);
    const announced = await shown.seen('announced');
    assert.ok(!announced.some((words) => words.startsWith(`Echo: ${answer}`)), `it was read out as well: ${announced}`);
    assert.match(await page.locator('.waterfall summary').innerText(), /from sending to the first sound/);
  });
}

test('acknowledgements come at least four times a second', async (t) => {
  const { page, proxy, wire } = await visitHeard(t);
  await ask(page, said);
  await over(wire, 'response.completed', 'r1');
  // A page that is held up at the end says the last of it after the gateway has stopped waiting.
  const ms = await eventually(() => {
    const all = proxy.sent.map((m) => JSON.parse(m)).filter((m) => m.type === 'playback.ack').map((m) => m.payload.playedMs);
    assert.equal(all.at(-1), Math.floor(sent(wire, 'r1').length / 24));
    return all;
  });
  const gaps = ms.map((at, i) => at - (ms[i - 1] ?? 0));
  assert.ok(gaps.length >= (4 * ms.at(-1)) / 1000, `${gaps}`); // on average: a busy machine holds up the page, and what it plays goes on
  assert.ok(gaps.every((gap) => gap > 0), `${gaps}`);
});

test('a hold in the middle: silence, and the gateway knows what was heard', async (t) => {
  const { page, shown, proxy, wire } = await visitHeard(t, { gateway: toned, init: [exactly] });
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  await ask(page, long);
  await played(proxy, 'r1', 1100);
  await picture(page, 'spoken-speaking');
  await page.evaluate(() => void (output.pressed.length = 0));
  await shown.press();
  const cancelled = await over(wire, 'response.cancelled', 'r1');
  assert.equal(cancelled.reason, 'barge_in');
  await page.waitForTimeout(1000); // in which something could still be heard
  const { frames } = await output(page);
  const onset = await page.evaluate(() => output.pressed[0]);
  const after = 1000 * (frames.at(-1).at - onset);
  assert.ok(after < 600, `it was heard for another ${after} ms`);
  await page.keyboard.press('Escape');
  await shown.release();
  await shown.idleAgain();
  const heardOf = compare(frames, wire, 'r1');
  const { ms, foreign } = heardOf;
  assert.ok(foreign <= 128, `${foreign} samples are none of the answer: a fade has 128`);
  const ack = proxy.sent.map((m) => JSON.parse(m)).findLast((m) => m.type === 'playback.ack').payload;
  assert.ok(Math.abs(ack.playedMs - ms) < 45, `${ms} ms were played, and the page says ${ack.playedMs}`);
  await picture(page, 'spoken-cut');
  assert.match(await page.locator('.cut').innerText(), new RegExp(`^you interrupted, ${(ack.playedMs / 1000).toFixed(1)} s heard$`));
  const history = await historyOf(proxy, wire);
  fits(history.at(-1).heardText, longAnswer, heardOf, saidInTime(proxy, wire, 'r1'));
  const [, heard, ahead] = (await shown.conversation())[0];
  assert.equal(heard[1] + ahead[1], longAnswer);
  fits(heard[1], longAnswer, heardOf, saidByThen(wire, 'r1'));
});

test('stop says with the cancel what was played', async (t) => {
  const { page, shown, proxy, wire } = await visitHeard(t, { init: [exactly] });
  await ask(page, long);
  await played(proxy, 'r1', 700);
  await page.keyboard.press('Escape');
  const cancelled = await over(wire, 'response.cancelled', 'r1');
  await shown.idleAgain();
  await page.waitForTimeout(500); // in which something could still be heard
  const { ms, foreign } = compare((await output(page)).frames, wire, 'r1');
  assert.ok(foreign <= 128);
  assert.ok(Math.abs(cancelled.playedMs - ms) < 45, `${ms} ms were played, and the gateway says ${cancelled.playedMs}`);
  assert.equal(JSON.parse(proxy.sent.findLast((m) => m.includes('response.cancel'))).payload.playedMs, cancelled.playedMs);
});

test('a connection that is cut again and again: each sample is heard once', async (t) => {
  const { page, shown, proxy, wire } = await visitHeard(t, { init: [exactly], expected: brokenSocket });
  const twice = `${said} ${said}`;
  await ask(page, twice);
  let at = 0;
  for (let i = 0; i < 8; i++) {
    at += 100 + Math.random() * 700;
    await played(proxy, 'r1', at);
    await shown.forget();
    proxy.cut();
    // It comes back by itself as well, perhaps before anybody could see that it was gone, or press the button.
    await eventually(async () => assert.ok((await shown.states('sessionWord')).includes('Kept')));
    await page.evaluate(() => document.querySelector('#banner button')?.click());
    await eventually(async () => assert.notEqual(await shown.sessionWord(), 'Kept'));
  }
  await over(wire, 'response.completed', 'r1');
  await eventually(async () => {
    const { foreign, left } = compare((await output(page)).frames, wire, 'r1');
    assert.deepEqual({ foreign, left }, { foreign: 0, left: 0 });
  });
  await heardToItsEnd(proxy, wire, 'r1', `You said: ${twice}`);
});

test('a page that is loaded again goes on where it was', async (t) => {
  const { page, shown, proxy, wire } = await visitHeard(t, { init: [exactly], expected: brokenSocket });
  await ask(page, long);
  await played(proxy, 'r1', 1000);
  const first = (await output(page)).frames;
  const before = compare(first, wire, 'r1').ms;
  await page.reload();
  // Some browsers let no sound out of a page that was loaded again before it is pressed; the gateway waits for that.
  await heardFromNowOn(page);
  await over(wire, 'response.completed', 'r1');
  await shown.idleAgain();
  const second = (await output(page)).frames.flatMap(({ samples }) => samples);
  const want = sent(wire, 'r1');
  const start = place(second, want);
  // What is played before the second worklet is there is not overheard.
  const told = proxy.sent.map((m) => JSON.parse(m));
  const last = told.slice(0, told.findIndex((m) => m.type === 'session.resume')).findLast((m) => m.type === 'playback.ack').payload.playedMs;
  assert.ok(start > before - 40 && start < last + 2000, `it went on at ${start} ms, after ${before} and ${last} that were acknowledged`);
  assert.equal((await shown.conversation())[0].map(([, words]) => words).join(''), `${long}${longAnswer}`);
});

test('the switch: off, an answer is text at once; on again, it is heard', async (t) => {
  const { page, shown, wire } = await visitHeard(t);
  await page.getByRole('button', { name: 'Settings' }).click();
  assert.match(await page.locator('#voice').innerText(), /Spoken by Flite, US English\./);
  await picture(page, 'spoken-settings');
  const toggle = page.getByRole('switch', { name: 'Speak the answers' });
  assert.equal(await toggle.getAttribute('aria-checked'), 'true');
  await toggle.click();
  await page.keyboard.press('Escape');
  await ask(page, 'quiet');
  await over(wire, 'response.completed', 'r1');
  await shown.idleAgain();
  assert.deepEqual((await output(page)).frames, []);
  await page.getByRole('button', { name: 'Settings' }).click();
  await toggle.click();
  await page.keyboard.press('Escape');
  await ask(page, 'loud');
  await over(wire, 'response.completed', 'r2');
  assert.ok((await output(page)).frames.length > 100);
});

test('another voice is chosen, speaks the next answer, and is chosen still in the next visit', async (t) => {
  const { page, shown, wire } = await visitHeard(t);
  const voice = page.getByLabel('Who speaks');
  await page.getByRole('button', { name: 'Settings' }).click();
  await voice.selectOption('flite-rms');
  await page.locator('#voice').getByText('Spoken by Flite, rms.').waitFor();
  await page.keyboard.press('Escape');
  const length = async (id) => {
    await ask(page, 'how far is the harbour');
    await over(wire, 'response.completed', id);
    return sent(wire, id).length;
  };
  const rms = await length('r1');
  await page.reload();
  await shown.ready();
  await page.getByRole('button', { name: 'Settings' }).click();
  assert.equal(await voice.inputValue(), 'flite-rms');
  await voice.selectOption('flite');
  await page.locator('#voice').getByText('Spoken by Flite, US English.').waitFor();
  await page.keyboard.press('Escape');
  assert.notEqual(await length('r2'), rms); // another voice takes another time
});

test('a hundred interruptions at random: what is kept as heard is what was played', async (t) => {
  // Four pages at a time: most of it is waiting for sound.
  const exact = (await Promise.all([1, 2, 3, 4].map(() => interrupted(t, 25)))).flat();
  const number = exact.filter(Boolean).length;
  t.diagnostic(`${number} of ${exact.length} to the word`);
  // A machine that is slow to speak, or to tell what it played, leaves words out; how many is a matter of the machine.
  assert.ok(number >= exact.length / 10, `only ${number} of ${exact.length} to the word`);
});

/** Interrupts so many answers, and holds the words that are kept of each against the samples that left the output: says which of them fit to the word. */
async function interrupted(t, times) {
  // With less to draw, a slow machine keeps up with four of them.
  const { page, shown, proxy, wire } = await visitHeard(t, { gateway: toned, init: [exactly], reducedMotion: 'reduce' });
  await shown.talk.click(); // and the pointer stays there
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  const truth = []; // null: it was over before it could be interrupted
  for (let i = 1; truth.filter(Boolean).length < times; i++) {
    assert.ok(i <= 2 * times, 'most answers are over before they can be interrupted');
    const id = `r${i}`;
    await forget(page);
    await ask(page, long);
    await played(proxy, id, 1);
    await page.waitForTimeout(Math.random() * 1500);
    const stopped = i % 2 === 0;
    if (stopped) await page.keyboard.press('Escape');
    else await page.mouse.down();
    const end = await eventually(() => {
      const event = wire.events.find(({ type, payload }) => /^response\.(cancelled|completed)$/.test(type) && payload.responseId === id);
      assert.ok(event, `${id} goes on`);
      return event;
    }, 60_000);
    if (!stopped) {
      await eventually(async () => assert.equal(await shown.session(), 'listening'));
      await page.keyboard.press('Escape');
      await shown.release();
    }
    await shown.idleAgain();
    if (end.type === 'response.completed') {
      truth.push(null);
      continue;
    }
    const reached = compare((await output(page)).frames, wire, id);
    assert.ok(reached.foreign <= 128, `${reached.foreign} samples of ${id} are none of it: a fade has 128`);
    // A stop says exactly what was played. Of a hold a late word corrects what the gateway knew, and the history has it.
    if (stopped) fits(end.payload.heardText, longAnswer, reached, saidInTime(proxy, wire, id));
    truth.push(reached);
  }
  const kept = (await historyOf(proxy, wire)).filter(({ role }) => role === 'assistant');
  assert.equal(kept.length, truth.length);
  return kept.flatMap(({ heardText }, i) => (truth[i] ? [fits(heardText, longAnswer, truth[i], saidInTime(proxy, wire, `r${i + 1}`))] : []));
}
