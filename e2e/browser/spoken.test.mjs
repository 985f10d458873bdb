// Answers that are heard: what leaves the page's audio output, and what the gateway believes of it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { eventually, startBrowser } from './lib/browser.mjs';
import { picture } from './lib/looks.mjs';
import { brokenSocket, visit } from './lib/page.mjs';
import { speak } from './lib/speech.mjs';
import { program, startVela } from './lib/vela.mjs';

const said = 'one two three four five six seven eight nine ten';
const answer = `You said: ${said}`;

let browser, vela, microphone, folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vela-spoken-'));
  microphone = speak('this is a test', { before: 0.2 });
  [browser, vela] = await Promise.all([startBrowser({ microphone: microphone.file }), startVela()]);
});
after(async () => {
  await Promise.all([browser?.close(), vela?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

/**
 * Runs in the page before its own scripts: whatever plays into the page's output plays into a second worklet too, which keeps every frame of
 * it. The product knows nothing of this.
 */
function tap() {
  const out = (window.output = { rate: 0, frames: [], pressed: [] });
  let context = null;
  const listen = async (node) => {
    context = node.context;
    out.rate = context.sampleRate;
    await context.audioWorklet.addModule('/tap.js');
    const ear = new AudioWorkletNode(context, 'tap');
    ear.port.onmessage = ({ data }) => out.frames.push(data);
    connect.call(node, ear);
    connect.call(ear, context.destination);
    out.ready = true;
  };
  const { connect } = AudioNode.prototype;
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode && this instanceof AudioWorkletNode && this.numberOfInputs === 0) void listen(this);
    return connect.call(this, to, ...rest);
  };
  for (const press of ['pointerdown', 'keydown']) window.addEventListener(press, () => context && out.pressed.push(context.currentTime), { capture: true });
}

/** The second worklet. Silence is not sent. */
const tapModule = `registerProcessor('tap', class extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples?.some((s) => s !== 0)) this.port.postMessage({ at: currentTime, samples: samples.slice() });
    return true;
  }
});`;

/** At the rate of the sound nothing is resampled, so that each sample that was sent is to be found again as it was. */
const exactly = () => (window.audioContextOptions = { sampleRate: 24000 });

async function visitSpoken(t, { init = [], ...options } = {}) {
  const visited = await visit(t, browser, vela, { turns: 'agent', spoken: true, init: [tap, ...init], ...options });
  visited.proxy.scripts.set('/tap.js', tapModule);
  await heardFromNowOn(visited.page);
  return { ...visited, wire: watch(visited.proxy) };
}

/** The output is opened by the first press, whatever is pressed. */
async function heardFromNowOn(page) {
  await page.keyboard.press('Shift');
  await eventually(async () => assert.equal(await page.evaluate(() => output.ready), true));
}

/** Follows what goes over the wire, in the one order in which the proxy sees it. */
function watch(proxy) {
  const wire = { deltas: [], events: [], ahead: 0 };
  const acked = (id) => {
    let ms = 0;
    for (const { type, payload } of proxy.sent.map((m) => JSON.parse(m))) {
      if ((type === 'playback.ack' || type === 'response.cancel') && payload.responseId === id) ms = Math.max(ms, payload.playedMs);
    }
    return ms;
  };
  proxy.holdFrom = (message) => {
    const { type, payload } = JSON.parse(message);
    wire.events.push({ type, payload });
    if (type === 'response.audio.delta') {
      const pcm = Buffer.from(payload.chunk, 'base64');
      const end = payload.startMs + pcm.length / 48;
      wire.ahead = Math.max(wire.ahead, end - acked(payload.responseId));
      wire.deltas.push({ ...payload, pcm, end });
    }
    return false;
  };
  return wire;
}

async function ask(page, words = said) {
  await page.locator('#type').fill(words);
  await page.locator('#type').press('Enter');
}

/** Waits until so much of an answer has been acknowledged, in ms. */
async function played(proxy, responseId, ms, within = 15_000) {
  await eventually(() => {
    const acks = proxy.sent.map((m) => JSON.parse(m)).filter((m) => m.type === 'playback.ack' && m.payload.responseId === responseId);
    assert.ok(acks.at(-1)?.payload.playedMs >= ms, `${acks.at(-1)?.payload.playedMs} ms of ${responseId} were played`);
  }, within);
}

const over = (wire, type, id) =>
  eventually(() => {
    const event = wire.events.find((e) => e.type === type && e.payload.responseId === id);
    assert.ok(event, `no ${type} of ${id}`);
    return event.payload;
  }, 20_000);

/** What left the output: its samples as PCM16, without the silence of whole quanta. */
async function output(page) {
  const { rate, frames } = await page.evaluate(() => ({ rate: output.rate, frames: output.frames.map(({ at, samples }) => [at, ...samples]) }));
  return { rate, frames: frames.map(([at, ...samples]) => ({ at, samples: samples.map((s) => Math.round(s * 32768)) })) };
}

const forget = (page) => page.evaluate(() => void (output.frames.length = output.pressed.length = 0));

/** The samples of an answer that were sent, each once. */
function sent(wire, id) {
  const samples = [];
  for (const { pcm, startMs } of wire.deltas.filter((d) => d.responseId === id)) {
    if (startMs < Math.floor(samples.length / 24)) continue; // told again
    for (let i = 0; i < pcm.length; i += 2) samples.push(pcm.readInt16LE(i));
  }
  return samples;
}

const loud = (samples) => samples.map((value, at) => ({ value, at })).filter(({ value }) => value !== 0);

/** How much of an answer was played, in ms, by each of its samples that was not zero; what is no sample of it is counted as well. */
function compare(frames, wire, id) {
  const [want, got] = [loud(sent(wire, id)), loud(frames.flatMap(({ samples }) => samples))];
  let same = 0;
  while (same < want.length && same < got.length && want[same].value === got[same].value) same++;
  return { ms: same === 0 ? 0 : want[same - 1].at / 24, foreign: got.length - same, left: want.length - same };
}

/** Without the pauses that a busy machine makes. */
function wav({ rate, frames }) {
  const pcm = frames.flatMap(({ samples }) => samples);
  const data = Buffer.alloc(44 + pcm.length * 2);
  data.write('RIFF', 0);
  data.writeUInt32LE(36 + pcm.length * 2, 4);
  data.write('WAVEfmt ', 8);
  data.writeUInt32LE(16, 16);
  data.writeUInt16LE(1, 20);
  data.writeUInt16LE(1, 22);
  data.writeUInt32LE(rate, 24);
  data.writeUInt32LE(rate * 2, 28);
  data.writeUInt16LE(2, 32);
  data.writeUInt16LE(16, 34);
  data.write('data', 36);
  data.writeUInt32LE(pcm.length * 2, 40);
  pcm.forEach((s, i) => data.writeInt16LE(Math.max(-32768, Math.min(32767, s)), 44 + i * 2));
  return data;
}

/** What a recogniser makes of it. */
async function recognised(sound) {
  const file = join(folder, 'output.wav');
  writeFileSync(file, wav(sound));
  const { stdout } = await promisify(execFile)(program, ['say', file, '--fast', '--url', vela.host], { timeout: 30_000 });
  return stdout.toLowerCase();
}

for (const [name, init] of [
  ['as the browser has it', []],
  ['at 44,100 Hz', [() => (window.audioContextOptions = { sampleRate: 44100 })]],
]) {
  test(`an answer is heard, word for word: the output ${name}`, async (t) => {
    const { page, shown, proxy, wire } = await visitSpoken(t, { init });
    await ask(page);
    await played(proxy, 'r1', 900);
    assert.equal(await shown.session(), 'speaking');
    const [[, heard, ahead]] = await shown.conversation();
    assert.ok(heard[1].length > 0 && ahead[1].length > 0, 'all of it is of one ink');
    assert.equal(heard[1] + ahead[1], answer);
    const { heardText } = await over(wire, 'response.completed', 'r1');
    assert.equal(heardText, answer);
    await shown.idleAgain();
    assert.deepEqual((await shown.conversation())[0], [
      ['user', said],
      ['agent', answer],
    ]);
    assert.ok(wire.ahead <= 400, `${wire.ahead} ms were ahead of what had been acknowledged`);
    const sound = await output(page);
    const words = await recognised(sound);
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
  const { page, proxy, wire } = await visitSpoken(t);
  await ask(page);
  await over(wire, 'response.completed', 'r1');
  const ms = proxy.sent.map((m) => JSON.parse(m)).filter((m) => m.type === 'playback.ack').map((m) => m.payload.playedMs);
  const gaps = ms.map((at, i) => at - (ms[i - 1] ?? 0));
  assert.ok(gaps.length >= (4 * ms.at(-1)) / 1000, `${gaps}`); // on average: a busy machine holds up the page, and what it plays goes on
  assert.ok(gaps.every((gap) => gap > 0), `${gaps}`);
  assert.equal(ms.at(-1), Math.floor(sent(wire, 'r1').length / 24));
});

test('a hold in the middle: silence, and the gateway knows what was heard', async (t) => {
  const { page, shown, proxy, wire } = await visitSpoken(t, { init: [exactly] });
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  await ask(page);
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
  const { ms, foreign } = compare(frames, wire, 'r1');
  assert.ok(foreign <= 128, `${foreign} samples are none of the answer: a fade has 128`);
  const ack = proxy.sent.map((m) => JSON.parse(m)).findLast((m) => m.type === 'playback.ack').payload;
  assert.ok(Math.abs(ack.playedMs - ms) < 45, `${ms} ms were played, and the page says ${ack.playedMs}`);
  await picture(page, 'spoken-cut');
  assert.match(await page.locator('.cut').innerText(), new RegExp(`^you interrupted, ${(ack.playedMs / 1000).toFixed(1)} s heard$`));
  const history = await historyOf(proxy, wire);
  fits(history.at(-1).heardText, wire, 'r1', ms);
  const [, heard, ahead] = (await shown.conversation())[0];
  assert.equal(heard[1] + ahead[1], answer);
  fits(heard[1], wire, 'r1', ms);
});

/** The conversation as the gateway has it. */
async function historyOf(proxy, wire) {
  proxy.send(JSON.stringify({ type: 'history.get', payload: {}, id: 'test' }));
  return eventually(() => {
    const event = wire.events.findLast((e) => e.type === 'history');
    assert.ok(event);
    return event.payload.items;
  });
}

/** That a text is what was heard by then: no word more, at most one less. A word is over when the next one begins, which is within a piece. */
function fits(text, wire, id, ms) {
  const marks = wire.deltas.filter((d) => d.responseId === id && d.text !== '');
  const ends = [];
  let words = '';
  for (const { text: more } of marks) for (const word of more.match(/\s*\S+\s*/g) ?? []) ends.push((words += word).trim());
  const begins = marks.flatMap(({ startMs, end, text: more }) => (more.match(/\s*\S+\s*/g) ?? []).map(() => ({ startMs, end })));
  const most = begins.filter(({ startMs }) => startMs <= ms).length - 1;
  const least = begins.filter(({ end }) => end <= ms).length - 2;
  const heard = text.trim() === '' ? 0 : ends.indexOf(text.trim()) + 1;
  assert.ok(text.trim() === '' || heard > 0, `${text} is no beginning of it`);
  assert.ok(heard <= Math.max(0, most) && heard >= least, `after ${ms} ms ${heard} words are said to be heard: from ${least} to ${most} were`);
}

test('stop says with the cancel what was played', async (t) => {
  const { page, shown, proxy, wire } = await visitSpoken(t, { init: [exactly] });
  await ask(page);
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
  const { page, shown, proxy, wire } = await visitSpoken(t, { init: [exactly], expected: brokenSocket });
  await ask(page);
  for (const ms of [500, 1500, 2200]) {
    await played(proxy, 'r1', ms);
    proxy.cut();
    await eventually(async () => assert.equal(await shown.sessionWord(), 'Kept'));
    await page.locator('#banner button').click();
    await eventually(async () => assert.equal(await shown.session(), 'speaking'));
  }
  await over(wire, 'response.completed', 'r1');
  const { foreign, left } = compare((await output(page)).frames, wire, 'r1');
  assert.deepEqual({ foreign, left }, { foreign: 0, left: 0 });
});

test('a page that is loaded again goes on where it was', async (t) => {
  const { page, shown, proxy, wire } = await visitSpoken(t, { init: [exactly], expected: brokenSocket });
  const long = `${said} ${said} ${said}`; // so that there is something left to play, however slow the machine is
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
  assert.ok(start > before - 40 && start < before + 2000, `it went on at ${start} ms, after ${before}`);
  assert.equal((await shown.conversation())[0].map(([, words]) => words).join(''), `${long}You said: ${long}`);
});

/** Where a sound begins in a longer one, in ms. */
function place(sound, all) {
  const [part, whole] = [loud(sound).map(({ value }) => value).slice(0, 400), loud(all)];
  const at = whole.findIndex((_, i) => part.every((value, k) => whole[i + k]?.value === value));
  return at < 0 ? NaN : whole[at].at / 24;
}

test('the switch: off, an answer is text at once; on again, it is heard', async (t) => {
  const { page, shown, wire } = await visitSpoken(t);
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

test('thirty interruptions at random: what was heard is what was played', async (t) => {
  const { page, shown, proxy, wire } = await visitSpoken(t, { init: [exactly] });
  await shown.talk.click();
  await eventually(async () => assert.equal(await shown.title(), 'The microphone is on. Hold to talk.'));
  const truth = [];
  for (let i = 1; i <= 30; i++) {
    const id = `r${i}`;
    await forget(page);
    await ask(page);
    await played(proxy, id, 1);
    await page.waitForTimeout(Math.random() * 2200);
    if (i % 2 === 0) await page.keyboard.press('Escape');
    else await shown.press();
    await over(wire, 'response.cancelled', id);
    if (i % 2 !== 0) {
      await eventually(async () => assert.equal(await shown.session(), 'listening'));
      await page.keyboard.press('Escape');
      await shown.release();
    }
    await shown.idleAgain();
    const { ms, foreign } = compare((await output(page)).frames, wire, id);
    assert.ok(foreign <= 128, `${foreign} samples of ${id} are none of it`);
    truth.push({ id, ms });
  }
  const heard = (await historyOf(proxy, wire)).filter((item) => item.role === 'assistant');
  // An answer of which nothing was heard is none that the agent knows of; the history may have forgotten the first ones.
  for (const { id, ms } of truth) {
    const { heardText } = wire.events.find((e) => e.type === 'response.cancelled' && e.payload.responseId === id).payload;
    if (Number(id.slice(1)) % 2 === 0) fits(heardText, wire, id, ms);
  }
  heard.reverse().forEach(({ heardText }, i) => fits(heardText, wire, truth.at(-1 - i).id, truth.at(-1 - i).ms));
  assert.ok(heard.length >= 15, `${heard.length} answers in the history`);
});
