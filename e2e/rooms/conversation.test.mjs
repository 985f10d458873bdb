// Phones in a room of the real LiveKit server, and the built program as their agent.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dispose } from '@livekit/rtc-node';
import { eventually } from '../browser/lib/browser.mjs';
import { modelAgent, startAgents, startModels } from '../browser/lib/models.mjs';
import { speak } from '../browser/lib/speech.mjs';
import { key, secret, startLiveKit } from './lib/livekit.mjs';
import { joinRoom } from './lib/phone.mjs';

const question = 'what time is it';

let livekit, vela, wav;
before(async () => {
  wav = speak(question, { before: 0.3, after: 0.3 }).file;
  livekit = await startLiveKit();
  Object.assign(process.env, { LIVEKIT_URL: livekit.url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret });
  vela = await startAgents(['parrot: {kind: echo}']);
});
after(async () => {
  await vela?.stop();
  await livekit?.stop();
  await dispose();
});

test('speech is transcribed, answered in writing and in sound', async () => {
  const phone = await joinRoom(vela, 'kitchen', 'ann');
  await eventually(() => assert.equal(phone.state(), 'listening'), 20_000);
  await phone.say(wav);
  await eventually(() => assert.ok(phone.agentSaid().some((row) => row.ended)), 20_000);
  console.log(phone.said, phone.events, phone.order, phone.sound, phone.failures);
  await eventually(() => assert.ok(phone.sound.loud > 24000), 20_000);
  await phone.leave();
});
