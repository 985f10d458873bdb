// The page as a phone: the built program's page at /phone in a room of the real LiveKit server, with the built program as its agent.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { get } from 'node:https';
import { networkInterfaces, tmpdir } from 'node:os';
import { after, before as first, test } from 'node:test';
import { promisify } from 'node:util';
import WebSocket, { WebSocketServer } from 'ws';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, openPage, startBrowser } from './lib/browser.mjs';
import { barriers, faint, picture, sideways } from './lib/looks.mjs';
import { startAgents } from './lib/models.mjs';
import { brokenSocket, noGateway, Shown } from './lib/page.mjs';
import { speak } from './lib/speech.mjs';
import { program, startVela } from './lib/vela.mjs';
import { key, secret, startLiveKit } from '../rooms/lib/livekit.mjs';
import { lastSaid, startModel, toolsSince } from '../rooms/lib/model.mjs';

const long = 30_000;

/** What the fake microphone is silent before its words, time enough to open it, and behind them, in seconds. */
const before = 3;
const behind = 2;
/** What is recognised of the question. Browsers clean the sound up, which the recogniser was not made for: its first word may be another. */
const heard = / time is (it|a)$/;

const story = 'This is a sentence of the story, which has no end. ';

async function* answer(messages, ended) {
  const said = lastSaid(messages);
  const done = toolsSince(messages);
  if (/time/.test(said)) {
    if (done === 0) yield { name: 'read_file', arguments: { path: 'notes/clock.txt' } };
    else yield* ['It is ', 'half past nine.'];
  } else if (/change/.test(said)) {
    if (done === 0) yield { name: 'write_file', arguments: { path: 'book.txt', content: book('new') } };
    else yield 'The book is changed.';
  } else if (/story/.test(said)) {
    for (let i = 0; i < 200 && !ended(); i++) {
      yield story;
      await new Promise((next) => setTimeout(next, 60));
    }
  } else {
    yield `You said ${said}, after ${messages.filter((m) => m.role === 'user').length - 1} others.`;
  }
}
const book = (what) => Array.from({ length: 1700 }, (_, i) => `Line ${i} of the ${what} book, which is about ships and the sea.`).join('\n');

let browser, livekit, model, vela, question;
first(async () => {
  question = speak('what time is it', { before, after: behind });
  [browser, livekit, model] = await Promise.all([startBrowser({ microphone: question.file }), startLiveKit(), startModel(answer)]);
  vela = await startGateway(livekit);
});
after(async () => {
  await Promise.all([browser?.close(), vela?.stop()]);
  await Promise.all([livekit?.stop(), model?.stop()]);
});

async function startGateway({ url }, more = '') {
  Object.assign(process.env, { LIVEKIT_URL: url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret });
  try {
    return await startAgents([`model: {kind: openai, url: "${model.url}", model: m, tools: {root: project, rules: {write_file: allow}}}`], [], more);
  } finally {
    for (const name of ['LIVEKIT_URL', 'LIVEKIT_API_KEY', 'LIVEKIT_API_SECRET']) delete process.env[name];
  }
}

let rooms = 0;

/** Somebody in front of the phone: what is shown there, and what can be done. */
class InFront extends Shown {
  constructor(page) {
    super(page);
    this.subtitles = page.locator('#subtitles');
  }

  async join(room, name = '') {
    await this.page.locator('#room').fill(room);
    if (name) await this.page.locator('#name').fill(name);
    await this.page.locator('#join button').click();
  }

  agentState = () => this.page.locator('#agent-state').getAttribute('data-state');
  subtitle = async (who) => (await this.subtitles.locator(`[data-who="${who}"]`).allTextContents())[0] ?? '';

  /** Where there is no room for both, the button to type is not there during a turn. */
  async type(words) {
    await eventually(async () => assert.equal(await this.session(), 'idle'), long);
    const button = this.page.locator('.actions .type');
    if (await button.isVisible()) await button.click();
    await this.page.locator('#type').fill(words);
    await this.page.locator('#type').press('Enter');
  }

  /** Says all that the fake microphone says, once: it begins when the first press opens it, and the recogniser likes no long silence before. */
  async say() {
    await this.press();
    await this.release();
    await eventually(async () => assert.equal(await this.page.evaluate(() => window.seen.tracks.length), 1), long);
    const begun = performance.now();
    await this.page.waitForTimeout(1000 * (before - 0.6));
    await eventually(async () => {
      await this.press();
      if (await this.isHeld()) return;
      await this.release();
      assert.fail('the control is not held');
    }, long);
    await this.page.waitForTimeout(begun + question.ms - 1000 * (behind - 0.6) - performance.now());
    await this.release();
  }

  isHeld = async () => (await this.talk.getAttribute('aria-pressed')) === 'true';

  async answered(words) {
    await eventually(async () => assert.equal(await this.lastAnswer(), words), long);
  }

  /** The answer of the last turn, from the conversation; the subtitles are shown again afterwards. */
  async lastAnswer() {
    return (await this.turns()).at(-1)?.find(([who]) => who === 'agent')?.[1];
  }

  async turns() {
    await this.page.locator('#whole').click();
    const turns = await this.conversation();
    await this.page.locator('#whole').click();
    return turns;
  }
}

async function openPhone(t, { at = vela, with: visitor = browser, ready = true, room = `room ${++rooms}`, query = '', ...options } = {}) {
  const watch = await openPage(visitor, `${at.url}/phone${query}`, { viewport: { width: 390, height: 844 }, also: [new URL(livekit.url).host], ...options });
  const phone = new InFront(watch.page);
  afterwards(t, async () => {
    try {
      await watch.check();
    } finally {
      await watch.close();
    }
  });
  if (ready) {
    await phone.join(room);
    await inRoom(phone);
  }
  return Object.assign(phone, { room });
}

async function inRoom(phone) {
  await eventually(async () => {
    assert.equal(await phone.connection(), 'connected');
    assert.equal(await phone.agentState(), 'listening');
    assert.equal(await phone.session(), 'idle');
    assert.equal(await phone.talk.isEnabled(), true);
  }, long);
}

/** How loud what the page plays has been, at its loudest, since the last call. */
const loudness = (page) =>
  page.evaluate(async () => {
    window.ear ??= new AudioContext();
    await window.ear.resume();
    let most = 0;
    for (const element of document.querySelectorAll('audio')) {
      if (element.muted || !element.srcObject) continue;
      const source = window.ear.createMediaStreamSource(element.srcObject);
      const analyser = source.connect(window.ear.createAnalyser());
      const samples = new Float32Array(analyser.fftSize);
      for (let i = 0; i < 10; i++) {
        await new Promise((next) => setTimeout(next, 30));
        analyser.getFloatTimeDomainData(samples);
        most = Math.max(most, ...samples.map(Math.abs));
      }
      source.disconnect();
    }
    return most;
  });

/** Waits for something to be heard. It begins to listen at once: an answer may be over before anybody looks for it. */
function heardAloud(page) {
  const heard = eventually(async () => assert.ok((await loudness(page)) > 0.02, 'nothing is heard'), 3 * long);
  heard.catch(() => {}); // whoever waits is told
  return heard;
}

test('speech is shown while it is said, then what the agent does, then its answer, which is heard', async (t) => {
  const phone = await openPhone(t);
  assert.equal(await phone.connectionWord(), 'In the room');
  await picture(phone.page, 'phone-idle');
  const aloud = heardAloud(phone.page);
  await phone.say();
  await eventually(async () => assert.equal(await phone.subtitle('agent'), 'It is half past nine.'), long);
  await picture(phone.page, 'phone-answer');
  await aloud;
  const states = await phone.states('partial', 'status', 'session');
  const partials = states.map(([partial]) => partial).filter((p) => p !== '');
  assert.ok(partials.length > 1, `partials: ${partials}`);
  assert.ok(states.some(([, status]) => status === 'Reading notes/clock.txt'), JSON.stringify(states));
  assert.ok(states.some(([, , session]) => session === 'thinking') && states.some(([, , session]) => session === 'speaking'), JSON.stringify(states));
  const turns = await phone.turns();
  assert.match(turns[0][0][1], heard);
  assert.deepEqual(turns, [[['user', turns[0][0][1]], ['agent', 'It is half past nine.']]]);
  // Both go 3 s after they were final, and the answer not before it was heard.
  await eventually(async () => assert.deepEqual([await phone.subtitle('user'), await phone.subtitle('agent')], ['', '']), long);
  await eventually(async () => assert.equal(await phone.session(), 'idle'), long);
  await phone.page.locator('#open-artifacts-pad').click();
  assert.match(await phone.page.locator('#artifact-panel').textContent(), /half past nine|clock/);
  await picture(phone.page, 'phone-artifact');
});

test('a diff of 100 KB comes in pieces and is shown whole', async (t) => {
  const phone = await openPhone(t);
  await phone.type('change the book');
  await phone.answered('The book is changed.');
  await phone.page.locator('#open-artifacts-pad').click();
  await eventually(async () => {
    const shown = await phone.page.locator('#artifact-panel').textContent();
    const lines = new Set([...shown.matchAll(/Line (\d+) of the new book/g)].map(([, n]) => n));
    assert.deepEqual([lines.size, lines.has('0'), lines.has('1699')], [1700, true, true]);
  });
});

test('whoever talks over the answer is heard', async (t) => {
  const phone = await openPhone(t);
  await phone.type('tell me a story');
  await eventually(async () => assert.match((await phone.subtitle('agent')) ?? '', /sentence/), long);
  await eventually(async () => assert.equal(await phone.session(), 'speaking'), long);
  // The browser cancels the echo of the answer, and with it some of what is said over it: what is recognised may be other words.
  await phone.say();
  await eventually(async () => assert.match((await phone.turns())[1]?.[1]?.[1] ?? '', /^(It is half past nine|You said )/), long);
  const [told, asked] = await phone.turns();
  assert.match(told.at(-1)[1], /sentence of the story/);
  assert.deepEqual(asked.map(([who]) => who), ['user', 'agent']);
  await phone.page.locator('#whole').click();
  assert.match(await phone.page.locator('.cut').first().textContent(), /interrupted/);
});

test('the microphone is muted while the control is not held', async (t) => {
  const phone = await openPhone(t);
  await phone.say();
  await phone.answered('It is half past nine.');
  // It says the same words over and over. A turn in writing is time enough for some of them.
  await phone.page.waitForTimeout(question.ms);
  await phone.type('hello');
  await phone.answered('You said hello, after 1 others.');
  assert.equal((await phone.turns()).length, 2);
});

test('hands-free: one press opens the microphone, and who speaks is heard until it is switched off', async (t) => {
  const phone = await openPhone(t, { init: [() => localStorage.setItem('vela.handsFree', 'yes')] });
  await eventually(async () => assert.equal(await phone.title(), 'Press once, then just talk'), long);
  const words = async () => (await phone.turns()).flatMap((turn) => turn.filter(([who]) => who === 'user').map(([, text]) => text));
  await phone.talk.click();
  await eventually(async () => assert.equal(await phone.title(), 'Just talk'), long);
  await eventually(async () => assert.match((await words()).join(), /time is/), long);
  await eventually(async () => assert.equal(await phone.lastAnswer(), 'It is half past nine.'), long);
  await picture(phone.page, 'phone-handsfree');
  await phone.page.getByRole('button', { name: 'Settings' }).click();
  await phone.page.getByRole('dialog').getByRole('switch', { name: 'Hands-free' }).click();
  await phone.page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await phone.session(), 'idle'), long);
  await eventually(async () => assert.equal(await phone.title(), 'Hold to talk'), long);
  const before = (await words()).length;
  // It says the same words over and over, which nobody hears any more: a turn in writing is time enough for some of them.
  await phone.page.waitForTimeout(question.ms);
  await phone.type('hello');
  await phone.answered(`You said hello, after ${before} others.`);
});

test('what is typed goes on lk.chat, and comes back as what was said', async (t) => {
  const phone = await openPhone(t);
  await phone.type('good morning');
  await phone.answered('You said good morning, after 0 others.');
  assert.deepEqual((await phone.turns())[0][0], ['user', 'good morning']);
});

test('answers that are not wanted aloud are not heard', async (t) => {
  const phone = await openPhone(t, { init: [() => localStorage.setItem('vela.speak', 'no')] });
  await phone.type('tell me a story');
  await eventually(async () => assert.match((await phone.subtitle('agent')) ?? '', /sentence/), long);
  assert.ok((await loudness(phone.page)) < 0.01);
  await phone.stop.click();
  await eventually(async () => assert.equal(await phone.session(), 'idle'), long);
});

test('a conversation that was begun on the socket goes on in the room', async (t) => {
  const room = `room ${++rooms}`;
  const socket = new WebSocket(`${vela.url.replace('http', 'ws')}/ws?turns=agent`, ['vela.v2']);
  afterwards(t, () => socket.close());
  const seen = [];
  socket.on('message', (data) => seen.push(JSON.parse(data)));
  await new Promise((open) => socket.once('open', open));
  const send = (type, payload) => socket.send(JSON.stringify({ type, payload }));
  const told = (type) => eventually(() => seen.find((e) => e.type === type) ?? assert.fail(`no ${type}`), long);
  send('session.start', { turns: 'agent', room });
  await told('session.ready');
  send('input_text.submit', { text: 'remember the harbour' });
  await told('response.completed');
  const phone = await openPhone(t, { room });
  await phone.type('and the pier');
  await phone.answered('You said and the pier, after 1 others.');
  assert.ok(model.asked.at(-1).some((m) => m.content === 'remember the harbour'));
  // What happens in the room is told on the socket as well.
  await eventually(() => assert.ok(seen.some((e) => e.type === 'transcript.final' && e.payload.text === 'and the pier')), long);
  socket.close();
  await phone.type('and the sea');
  await phone.answered('You said and the sea, after 2 others.');
});

test('the LiveKit server goes and comes back, and the conversation goes on', async (t) => {
  const phone = await openPhone(t, { expected: [...noGateway, /WebSocket|Failed to fetch|net::/] });
  await phone.type('one');
  await phone.answered('You said one, after 0 others.');
  const { port, udp } = livekit;
  await livekit.kill();
  await eventually(async () => assert.notEqual(await phone.connection(), 'connected'), long);
  await picture(phone.page, 'phone-lost');
  livekit = await startLiveKit({ port, udp });
  await eventually(() => inRoom(phone), 3 * long);
  await phone.type('two');
  await phone.answered('You said two, after 1 others.');
  assert.equal((await phone.turns()).length, 2);
});

test('live mode pauses when nobody says anything, and is resumed with its conversation', async (t) => {
  const quiet = await startLiveKit();
  afterwards(t, () => quiet.stop());
  const patient = await startGateway(quiet, 'livekit: {hold: 10s}\n');
  afterwards(t, () => patient.stop());
  const phone = await openPhone(t, { at: patient, also: [new URL(quiet.url).host] });
  await phone.type('one');
  await phone.answered('You said one, after 0 others.');
  await eventually(async () => assert.equal(await phone.bannerWords(), 'Live mode paused — tap to resume'), long);
  await picture(phone.page, 'phone-paused');
  await phone.bannerAction().click();
  await inRoom(phone);
  await phone.type('two');
  await phone.answered('You said two, after 1 others.');
});

test("a phone alone has another agent's work shown, and not any more", async (t) => {
  const lab = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  afterwards(t, () => (lab.clients.forEach((c) => c.terminate()), lab.close()));
  await new Promise((listens) => lab.once('listening', listens));
  const post = async (path, body = {}) => (await fetch(`${vela.url}/api/sources${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json();
  const { id } = await post('', { name: 'the lab', url: `ws://127.0.0.1:${lab.address().port}` });
  await post(`/${encodeURIComponent(id)}/connect`);
  await eventually(() => assert.equal(lab.clients.size, 1), long);
  let calls = 0;
  /** A tool of theirs, and what came of it. */
  const works = () => {
    const callId = `lab-${++calls}`;
    const say = (type, payload) => lab.clients.forEach((c) => c.send(JSON.stringify({ id: `${callId}-${type}`, type, timestamp: Date.now(), source: 'lab', payload: { toolName: 'Read', agentId: 'lab', callId, ...payload } })));
    say('tool_call', { input: { file_path: 'deep/sea/chart.go' } });
    say('tool_result', { success: true, output: { file: { filePath: 'deep/sea/chart.go', content: `package chart${calls}` } } });
  };
  const phone = await openPhone(t);
  const lever = phone.page.getByRole('dialog').getByRole('switch', { name: 'the lab' });
  const others = async (on) => {
    await phone.page.getByRole('button', { name: 'Settings' }).click();
    await lever.click();
    await eventually(async () => assert.equal(await lever.getAttribute('aria-checked'), String(on)));
    if (on) await picture(phone.page, 'phone-others');
    await phone.page.keyboard.press('Escape');
  };
  await others(true);
  const bob = await openPhone(t, { room: phone.room }); // everybody there sees it
  await eventually(async () => {
    works();
    for (const one of [phone, bob]) assert.deepEqual(await one.page.locator('#status').allTextContents(), ['the lab Reading .../sea/chart.go']);
  }, long);
  assert.equal(await phone.session(), 'idle');
  await picture(phone.page, 'phone-guest');
  await phone.page.locator('#open-artifacts-pad').click();
  await eventually(async () => assert.match(await phone.page.locator('#artifact-panel').textContent(), /package chart\d/), long);
  await phone.page.keyboard.press('Escape');
  await others(false);
  await phone.type('hello'); // behind it nobody is followed, and what was on its way is here
  await phone.answered('You said hello, after 0 others.');
  const shown = await phone.page.locator('#open-artifacts-pad').textContent();
  works();
  await phone.type('hello again');
  await phone.answered('You said hello again, after 1 others.');
  assert.equal(await phone.page.locator('#open-artifacts-pad').textContent(), shown);
});

test('a phone in the network: one link, over https, and all that it says to LiveKit goes through the gateway', async (t) => {
  const lan = Object.values(networkInterfaces()).flat().find((a) => a.family === 'IPv4' && !a.internal).address;
  const [hall, keys] = await Promise.all([startLiveKit({ media: lan }), promisify(execFile)(program, ['key'])]);
  afterwards(t, () => hall.stop());
  const gateway = await startVela(['--turns', 'agent', '--auth', 'keys', '--tls', 'self', '--invite', 'link'], '0.0.0.0:0', {
    VELA_KEYS: keys.stdout.trim(), LIVEKIT_URL: hall.url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret, XDG_CONFIG_HOME: mkdtempSync(`${tmpdir()}/vela-lan-`),
  });
  afterwards(t, () => gateway.stop());
  const link = await eventually(() => gateway.out.match(new RegExp(`https://${lan}:\\d+/phone#token=\\S+`))?.[0] ?? assert.fail(gateway.out), long);
  const watch = await openPage(browser, link, { ignoreHTTPSErrors: true, viewport: { width: 390, height: 844 } }); // no other host: not LiveKit's either
  afterwards(t, async () => {
    try {
      await watch.check();
    } finally {
      await watch.close();
    }
  });
  const phone = new InFront(watch.page);
  await phone.join('network', 'Ann');
  await inRoom(phone);
  const aloud = heardAloud(phone.page);
  await phone.type('good morning');
  await phone.answered('You said: good morning');
  await aloud;
  const host = new URL(link).host;
  const { status } = await fetch(`${hall.http}/rtc/validate`);
  assert.equal(status, 401);
  // Neither a foreign page nor another path gets through.
  const ask = (path, headers = {}) => new Promise((answer, failed) => get(`https://${host}${path}`, { rejectUnauthorized: false, headers }, (r) => answer(r.resume().statusCode)).on('error', failed));
  assert.deepEqual(await Promise.all([ask('/rtc/validate'), ask('/rtc/validate', { origin: 'https://evil.example' }), ask('/twirp/livekit.RoomService/ListRooms'), ask('/rtc/other')]), [401, 403, 404, 404]);
});

test('what keeps somebody out of a room is said in words', async (t) => {
  const alone = await startVela([]);
  afterwards(t, () => alone.stop());
  const phone = await openPhone(t, { at: alone, ready: false, expected: noGateway });
  await picture(phone.page, 'phone-join');
  await phone.page.locator('#room').fill('');
  await phone.page.locator('#join button').click();
  assert.equal(await phone.page.locator('#room-missing').textContent(), 'A room needs a name.');
  await phone.join('harbour');
  await eventually(async () => assert.match(await phone.bannerWords(), /^This gateway has no LiveKit server\./));
  await picture(phone.page, 'phone-none');
  await phone.page.locator('#leave').click();
  await phone.page.locator('#room').waitFor();
});

test('a microphone that is refused leaves the keyboard', async (t) => {
  const deaf = await startBrowser({ allowed: false });
  afterwards(t, () => deaf.close());
  const phone = await openPhone(t, { with: deaf });
  await phone.talk.click();
  await eventually(async () => assert.match(await phone.bannerWords(), /^(Microphone refused|No microphone found)\./));
  await phone.type('hello');
  await phone.answered('You said hello, after 0 others.');
});

for (const [width, height] of [[390, 844], [320, 640], [1280, 800]]) {
  for (const colorScheme of ['dark', 'light']) {
    test(`it looks right and can be read at ${width} px, ${colorScheme}`, async (t) => {
      const phone = await openPhone(t, { ready: false, viewport: { width, height }, colorScheme });
      const check = async (name) => {
        await picture(phone.page, `phone-${name}-${width}-${colorScheme}`);
        assert.deepEqual(await barriers(phone.page), []);
        assert.deepEqual(await sideways(phone.page), []);
        assert.deepEqual(await faint(phone.page), []);
      };
      await check('form');
      await phone.join(`room ${++rooms} with quite a long name, longer than fits`, 'Anna');
      await inRoom(phone);
      await check('room');
      await phone.type('tell me a story');
      await eventually(async () => assert.match((await phone.subtitle('agent')) ?? '', /sentence/), long);
      await check('story');
      await phone.stop.click();
      await eventually(async () => assert.equal(await phone.session(), 'idle'), long);
      await phone.page.locator('#whole').click();
      await check('whole');
    });
  }
}

test('the page leads to the phone', async (t) => {
  const watch = await openPage(browser, `${vela.url}/`);
  afterwards(t, async () => (await watch.check(), watch.close()));
  await watch.page.getByRole('button', { name: 'Settings' }).click();
  await watch.page.locator('#phone').click();
  await watch.page.locator('#join').waitFor();
});

test('all of it can be done by keyboard', async (t) => {
  const phone = await openPhone(t, { ready: false });
  const { keyboard } = phone.page;
  await eventually(async () => assert.equal(await phone.page.evaluate(() => document.activeElement.id), 'room'));
  await keyboard.type(`room ${++rooms}`);
  await keyboard.press('Enter');
  await inRoom(phone);
  await keyboard.press('/');
  await eventually(async () => assert.equal(await phone.page.evaluate(() => document.activeElement.id), 'type'));
  await keyboard.type('hello');
  await keyboard.press('Enter');
  await eventually(async () => assert.equal(await phone.subtitle('agent'), 'You said hello, after 0 others.'), long);
  await phone.page.locator('#leave').focus();
  await keyboard.press('Enter');
  await phone.page.locator('#room').waitFor();
});
