// What leaves the page's audio output, beside what went over the wire: sample by sample, on the output's own clock.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './browser.mjs';
import { visit } from './page.mjs';
import { msPerChar } from './tonevoice.mjs';
import { program } from './vela.mjs';

/**
 * Runs in the page before its own scripts: whatever plays into the page's output plays into a second worklet too, and so does the microphone,
 * where there is one: what is heard and what is said are told on one clock, in samples. The product knows nothing of this.
 */
export function tap() {
  const out = (window.output = { rate: 0, frames: [], microphone: [], pressed: [] });
  const { connect } = AudioNode.prototype;
  const { createMediaStreamSource } = AudioContext.prototype;
  let context = null;
  let ear = null;
  let stream = null;
  const come = [];
  // A busy page hears late of what left the output: this waits until it has. An output that is suspended says nothing.
  out.caughtUp = () =>
    context?.state === 'running' && ear
      ? new Promise((done) => {
          come.push(done);
          ear.port.postMessage('where');
          context.addEventListener('statechange', done, { once: true });
        })
      : null;
  const overhear = () => {
    if (ear && stream) connect.call(createMediaStreamSource.call(context, stream), ear, 0, 1);
  };
  const listen = async (node) => {
    context = node.context;
    out.context = context;
    out.rate = context.sampleRate;
    await context.audioWorklet.addModule('/tap.js');
    ear = new AudioWorkletNode(context, 'tap', { numberOfInputs: 2 });
    ear.port.onmessage = ({ data }) => {
      if (data === 'here') return come.shift()?.();
      if (data.samples) out.frames.push({ at: data.at, samples: data.samples });
      if (data.level > 0) out.microphone.push({ at: data.at, level: data.level });
    };
    connect.call(node, ear);
    connect.call(ear, context.destination);
    overhear();
    out.ready = true;
  };
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode && this instanceof AudioWorkletNode && this.numberOfInputs === 0) void listen(this);
    return connect.call(this, to, ...rest);
  };
  AudioContext.prototype.createMediaStreamSource = function (from) {
    stream = from;
    overhear();
    return createMediaStreamSource.call(this, from);
  };
  for (const press of ['pointerdown', 'keydown']) window.addEventListener(press, () => context && out.pressed.push(context.currentTime), { capture: true });
}

/** The second worklet. Silence is not sent. It says that it is here some quanta later, when what the page asked for just before has been rendered. */
const tapModule = `registerProcessor('tap', class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.asked = [];
    this.port.onmessage = () => this.asked.push(currentFrame + 8 * 128);
  }
  process([[samples], [microphone]]) {
    const sounds = samples?.some((s) => s !== 0);
    const level = microphone ? Math.sqrt(microphone.reduce((sum, s) => sum + s * s, 0) / microphone.length) : 0;
    if (sounds || level > 0.001) this.port.postMessage({ at: currentTime, samples: sounds ? samples.slice() : null, level });
    if (this.asked[0] <= currentFrame) {
      this.asked.shift();
      this.port.postMessage('here');
    }
    return true;
  }
});`;

/** At the rate of the sound nothing is resampled, so that each sample that was sent is to be found again as it was. */
export const exactly = () => (window.audioContextOptions = { sampleRate: 24000 });

/** A page in agent turns, whose answers are heard. */
export async function visitSpoken(t, browser, vela, { init = [], ...options } = {}) {
  const visited = await visit(t, browser, vela, { turns: 'agent', spoken: true, init: [tap, ...init], ...options });
  visited.proxy.scripts.set('/tap.js', tapModule);
  await heardFromNowOn(visited.page);
  return { ...visited, wire: watch(visited.proxy) };
}

/**
 * Presses until sound is let out. A page that was just loaded may not listen yet, and then the first press is lost; and sound that
 * comes before any press opens the output as well, which waits for one.
 */
export async function heardFromNowOn(page) {
  await eventually(async () => {
    await page.keyboard.press('Shift');
    assert.equal(await page.evaluate(() => output.ready && output.context.state), 'running');
  });
}

const acknowledged = new WeakMap();

/** How much of an answer the page has said to have played, in ms. Each message is read once. */
function acked(proxy, id) {
  const known = acknowledged.get(proxy) ?? { read: 0, ms: new Map() };
  acknowledged.set(proxy, known);
  for (; known.read < proxy.sent.length; known.read++) {
    const { type, payload } = JSON.parse(proxy.sent[known.read]);
    if (type !== 'playback.ack' && type !== 'response.cancel') continue;
    known.ms.set(payload.responseId, Math.max(known.ms.get(payload.responseId) ?? 0, payload.playedMs ?? 0));
  }
  return known.ms.get(id) ?? 0;
}

/** Follows what goes over the wire, in the one order in which the proxy sees it. */
export function watch(proxy) {
  const wire = { deltas: [], events: [], ahead: 0 };
  proxy.holdFrom = (message) => {
    const { type, payload } = JSON.parse(message);
    wire.events.push({ type, payload, acked: acked(proxy, payload.responseId), at: performance.now() });
    if (type === 'response.audio.delta') {
      const pcm = Buffer.from(payload.chunk, 'base64');
      const end = payload.startMs + pcm.length / 48;
      wire.ahead = Math.max(wire.ahead, end - acked(proxy, payload.responseId));
      wire.deltas.push({ ...payload, pcm, end });
    }
    return false;
  };
  return wire;
}

/** How long the end of an answer is waited for, in ms: it takes up to twenty seconds to speak, and longer where the output runs dry. */
const untilSpoken = 120_000;

export async function ask(page, words) {
  await page.locator('#type').fill(words);
  await page.locator('#type').press('Enter');
}

/** Waits until so much of an answer has been acknowledged, in ms. */
export async function played(proxy, responseId, ms, within = untilSpoken) {
  await eventually(() => assert.ok(acked(proxy, responseId) >= ms, `${acked(proxy, responseId)} ms of ${responseId} were played`), within);
}

export const over = (wire, type, id, within = untilSpoken) =>
  eventually(() => {
    const event = wire.events.find((e) => e.type === type && e.payload.responseId === id);
    assert.ok(event, `no ${type} of ${id}`);
    return event.payload;
  }, within);

/** What left the output: its samples as PCM16, without the silence of whole quanta. */
export async function output(page) {
  const { rate, frames } = await page.evaluate(async () => {
    await output.caughtUp();
    return { rate: output.rate, frames: output.frames.map(({ at, samples }) => [at, ...samples]) };
  });
  return { rate, frames: frames.map(([at, ...samples]) => ({ at, samples: samples.map((s) => Math.round(s * 32768)) })) };
}

export const forget = (page) =>
  page.evaluate(async () => {
    await output.caughtUp();
    output.frames.length = output.microphone.length = output.pressed.length = 0;
  });

/** The samples of an answer that were sent, each once. */
export function sent(wire, id) {
  const samples = [];
  for (const { pcm, startMs } of wire.deltas.filter((d) => d.responseId === id)) {
    if (startMs < Math.floor(samples.length / 24)) continue; // told again
    for (let i = 0; i < pcm.length; i += 2) samples.push(pcm.readInt16LE(i));
  }
  return samples;
}

const loud = (samples) => samples.map((value, at) => ({ value, at })).filter(({ value }) => value !== 0);

/**
 * How much of an answer was played, in ms: by its last sample that was not zero, and at most up to the next one, for silence leaves no trace. What is
 * no sample of it is counted as well. Where it was paused,
 * a quantum fades and rises again: these two are laid upon each other, and must be the sound as it came. `end` is the first quantum that is not of it.
 */
export function compare(frames, wire, id) {
  const whole = sent(wire, id);
  const want = loud(whole);
  let next = 0; // of want
  let pauses = 0;
  const ms = (at) => (want[at] ? want[at].at / 24 : whole.length / 24);
  const reached = () => ({ ms: next === 0 ? 0 : ms(next - 1), most: ms(next) });
  for (let i = 0; i < frames.length; i++) {
    const got = loud(frames[i].samples);
    let same = 0;
    while (same < got.length && want[next + same]?.value === got[same].value) same++;
    if (same === got.length) {
      next += same;
      continue;
    }
    const end = i + 1 < frames.length ? joined(frames[i].samples, frames[i + 1].samples, whole, want[next]?.at) : null;
    if (end === null) {
      next += same;
      const foreign = got.length - same + frames.slice(i + 1).reduce((sum, { samples }) => sum + loud(samples).length, 0);
      return { ...reached(), foreign, left: want.length - next, pauses, end: i };
    }
    pauses++;
    i++;
    while (next < want.length && want[next].at < end) next++;
  }
  return { ...reached(), foreign: 0, left: want.length - next, pauses, end: frames.length };
}

/** Where the quantum ends that faded and rose, if it is that: its first sample that is not zero lies about `near`. */
function joined(fade, rise, whole, near) {
  if (near === undefined) return null;
  for (let from = Math.max(0, near - fade.length); from <= near; from++) {
    if (fade.every((sample, i) => Math.abs(sample + rise[i] - (whole[from + i] ?? 0)) <= 3)) return from + fade.length;
  }
  return null;
}

/**
 * The samples as they came, without the pauses that a busy machine makes: where the output ran dry, silence fills what is left of one quantum,
 * and of the one in which it goes on.
 */
function continuous({ rate, frames }) {
  const gap = (i) => i > 0 && i < frames.length && frames[i].at - frames[i - 1].at > 1.5 * (128 / rate);
  return frames.flatMap(({ samples }, i) => {
    const from = gap(i) ? samples.findIndex((s) => s !== 0) : 0;
    const to = gap(i + 1) ? samples.findLastIndex((s) => s !== 0) + 1 : samples.length;
    return samples.slice(Math.max(from, 0), to);
  });
}

function wav(sound) {
  const { rate } = sound;
  const pcm = continuous(sound);
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
export async function recognised(vela, sound) {
  const folder = mkdtempSync(join(tmpdir(), 'vela-output-'));
  try {
    const file = join(folder, 'output.wav');
    writeFileSync(file, wav(sound));
    const { stdout } = await promisify(execFile)(program, ['say', file, '--fast', '--url', vela.host], { timeout: 60_000 });
    return stdout.toLowerCase();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The conversation as the gateway has it now. It is asked again where the connection was lost meanwhile. */
export async function historyOf(proxy, wire) {
  return eventually(() => {
    const before = wire.events.length;
    proxy.send(JSON.stringify({ type: 'history.get', payload: {}, id: 'test' }));
    return eventually(() => {
      const event = wire.events.slice(before).find((e) => e.type === 'history');
      assert.ok(event, 'no history');
      return event.payload.items;
    }, 10_000);
  }, 60_000);
}

/**
 * That an answer counts as heard to its end. The gateway waits a second for the page to say so: of one that something held up for longer, the
 * last words may be missing.
 */
export async function heardToItsEnd(proxy, wire, id, answer) {
  const { acked } = wire.events.find((e) => e.type === 'response.completed' && e.payload.responseId === id);
  const punctual = acked >= Math.floor(sent(wire, id).length / 24);
  await eventually(async () => {
    const { text, heardText } = (await historyOf(proxy, wire)).findLast(({ role }) => role === 'assistant');
    assert.equal(text, answer);
    const heard = heardText ?? text;
    if (punctual) assert.equal(heard, answer);
    else assert.ok(answer.startsWith(heard), `${heard} was heard`);
  });
}

/** How long after its cancel the gateway takes a word about an answer, in ms: 2 s, less what the way to it may take. */
const takenLate = 1900;

/** What the page has said in time to count of an answer that was cancelled: how much of it was played, in ms. */
export function saidInTime(proxy, wire, id) {
  const { at } = wire.events.find(({ type, payload }) => type === 'response.cancelled' && payload.responseId === id);
  let ms = 0;
  proxy.sent.forEach((message, i) => {
    const { type, payload } = JSON.parse(message);
    if ((type === 'playback.ack' || type === 'response.cancel') && payload.responseId === id && proxy.sentAt[i] <= at + takenLate) ms = Math.max(ms, payload.playedMs ?? 0);
  });
  return ms;
}

/** What the page had said of an answer when the gateway told it that this was cancelled: how much of it was played, in ms. */
export const saidByThen = (wire, id) => wire.events.find(({ type, payload }) => type === 'response.cancelled' && payload.responseId === id).acked;

/** What the gateway takes a character for, in ms, while it does not have all the sound of a sentence. */
const slowPerChar = 90;

/**
 * That a text is what was heard of an answer of the tone voice by then: no word more, and at most one less than what the page has `said` was played
 * at the slowest pace. Says whether it is at most one less than what was played, which it is where the gateway had all of the sound in time, and the page
 * said so in time. A word has been heard when its last character has been played; what follows it belongs to it.
 */
export function fits(text, answer, { ms, most }, said = ms) {
  const ends = [...answer.matchAll(/\s*\S+/g)].map((word) => word.index + word[0].length);
  const heard = text.trim() === '' ? 0 : ends.findIndex((end) => answer.slice(0, end) === text.trimEnd()) + 1;
  assert.ok(text.trim() === '' || heard > 0, `${text} is no beginning of ${answer}`);
  const whole = (until, perChar = msPerChar) => ends.filter((end) => end * perChar <= until).length;
  assert.ok(heard <= whole(most) && heard >= whole(Math.min(ms, said), slowPerChar) - 1, `after ${ms} ms, ${said} of them told, ${heard} words are said to be heard: ${whole(ms)} were`);
  return heard >= whole(ms) - 1;
}

/** Where a sound begins in a longer one, in ms. */
export function place(sound, all) {
  const [part, whole] = [loud(sound).map(({ value }) => value).slice(0, 400), loud(all)];
  const at = whole.findIndex((_, i) => part.every((value, k) => whole[i + k]?.value === value));
  return at < 0 ? NaN : whole[at].at / 24;
}

