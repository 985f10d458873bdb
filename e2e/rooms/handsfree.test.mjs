// Hands-free in a room: the microphone stays open, and the session hears where speech begins and ends.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import { after, before, test } from 'node:test';
import { dispose } from '@livekit/rtc-node';
import { afterwards } from '../browser/lib/afterwards.mjs';
import { eventually } from '../browser/lib/browser.mjs';
import { speak } from '../browser/lib/speech.mjs';
import { startVela } from '../browser/lib/vela.mjs';
import { key, secret, startLiveKit } from './lib/livekit.mjs';
import { lastSaid, startModel } from './lib/model.mjs';
import { joinRoom } from './lib/phone.mjs';

const long = 30_000;

async function* answer(messages, ended) {
  if (!/story/.test(lastSaid(messages))) return yield 'It is half past nine.';
  for (let i = 1; i < 200 && !ended(); i++) {
    yield `This is sentence number ${i} of the story. `;
    await new Promise((next) => setTimeout(next, 60));
  }
}

let livekit, model, vela, question, folder;
before(async () => {
  question = speak('what time is it', { before: 0.5, after: 2.5 }).file;
  [livekit, model] = await Promise.all([startLiveKit(), startModel(answer)]);
  folder = mkdtempSync(path(tmpdir(), 'vela-rooms-'));
  writeFileSync(path(folder, 'vela.yaml'), `agents:\n  model: {kind: openai, url: "${model.url}", model: m}\nlivekit: {hands_free: true}\n`);
  vela = await startVela(['--config', path(folder, 'vela.yaml')], '127.0.0.1:0', { LIVEKIT_URL: livekit.url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret });
});
after(async () => {
  await vela?.stop();
  await Promise.all([livekit?.stop(), model?.stop()]);
  rmSync(folder, { recursive: true, force: true });
  await dispose();
});

test('with an open microphone, silence ends the turn; speech over an answer stops it', async (t) => {
  const phone = await joinRoom(vela, 'open', 'ann');
  afterwards(t, () => phone.leave());
  await eventually(() => assert.equal(phone.state(), 'listening'), long);
  const answered = (text) => eventually(() => assert.deepEqual(phone.agentSaid().map((row) => [row.text, row.ended]).at(-1), [text, true]), long);
  await phone.say(question, { release: false });
  await answered('It is half past nine.');
  assert.match(phone.userSaid().at(-1).text, /what time/);
  await eventually(() => assert.equal(phone.state(), 'listening'), long);
  await phone.write('tell me a story');
  await eventually(() => assert.ok(phone.state() === 'speaking' && phone.sound.last > Date.now() - 200), long);
  await phone.say(question, { release: false });
  await answered('It is half past nine.');
  // Whoever is there can choose, and everybody knows what was chosen.
  const detection = () => phone.agent().attributes['vela.turn_detection'];
  assert.equal(detection(), 'vad');
  phone.mute(true); // open, it would begin to talk as soon as the gateway does not listen by itself
  await eventually(() => phone.call('session.start', { turnDetection: 'none' }), long);
  await eventually(() => assert.equal(detection(), 'none'), long);
  await eventually(() => phone.call('session.start', { turnDetection: 'vad', vad: { silenceMs: 900 } }), long); // what was on its way at the mute has ended
  await eventually(() => assert.equal(detection(), 'vad'), long);
  await assert.rejects(phone.call('session.start', { vad: { silenceMs: 1 } }), /cannot give that vad.silenceMs/);
  const story = phone.agentSaid().find((row) => /sentence/.test(row.text));
  assert.ok(story.ended && !story.text.includes('number 199'));
  assert.equal(vela.log, '');
});
