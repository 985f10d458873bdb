// What a conversation needs goes away for a while: the agent's process, the client's network, or everybody. That takes long to be noticed, so the
// tests run side by side, each with a LiveKit server of its own.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { dispose } from '@livekit/rtc-node';
import { afterwards } from '../browser/lib/afterwards.mjs';
import { eventually } from '../browser/lib/browser.mjs';
import { startAgents } from '../browser/lib/models.mjs';
import { api, key, secret, startLiveKit } from './lib/livekit.mjs';
import { lastSaid, startModel } from './lib/model.mjs';
import { mediaAddress, startNetwork } from './lib/network.mjs';
import { join, joinRoom, ticket } from './lib/phone.mjs';

const long = 60_000;

async function* answer(messages, ended) {
  const said = lastSaid(messages);
  if (!/story/.test(said)) return yield `You said ${said}, after ${messages.filter((m) => m.role === 'user').length - 1} others.`;
  for (let i = 1; i <= 240 && !ended(); i++) {
    yield `Sentence ${i}. `;
    await new Promise((next) => setTimeout(next, 50));
  }
}
const story = Array.from({ length: 240 }, (_, i) => `Sentence ${i + 1}. `).join('');

let model;
before(async () => (model = await startModel(answer)));
after(async () => {
  await model?.stop();
  await dispose();
});

/** A gateway that goes into the rooms of that server. */
function startGateway({ url }) {
  Object.assign(process.env, { LIVEKIT_URL: url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret });
  return startAgents([`model: {kind: openai, url: "${model.url}", model: m}`]);
}

const answered = (phone, text) => eventually(() => assert.deepEqual(phone.agentSaid().map((row) => [row.text, row.ended]).at(-1), [text, true]), long);
const metrics = async (gateway) => (await fetch(`${gateway.url}/metrics`)).text();

describe('outages', { concurrency: true, timeout: 2 * long }, () => {
  test('a gateway is killed in the middle of an answer, and another one takes the room', async (t) => {
    const livekit = await startLiveKit();
    const gateways = await Promise.all([startGateway(livekit), startGateway(livekit)]);
    afterwards(t, async () => {
      await Promise.all(gateways.map((g) => g.stop()));
      await livekit.stop();
    });
    const phone = await joinRoom(gateways[0], 'orphan', 'ann');
    afterwards(t, () => phone.leave());
    await eventually(() => assert.equal(phone.state(), 'listening'), long);
    await phone.write('tell me a story');
    await eventually(() => assert.match(phone.agentSaid()[0]?.text ?? '', /Sentence 10/), long);
    const first = phone.agent().identity;
    const [served] = (await Promise.all(gateways.map(async (g) => (/^vela_rooms 1$/m.test(await metrics(g)) ? g : null)))).filter(Boolean);
    const other = gateways.find((g) => g !== served);
    await served.kill();
    await eventually(() => assert.ok(phone.agent() && phone.agent().identity !== first && phone.state() === 'listening'), long);
    assert.match(await metrics(other), /^vela_rooms 1$/m);
    await phone.write('hello'); // in a session of its own: what was said before went with the process
    await answered(phone, 'You said hello, after 0 others.');

    // An agent that leaves because it was asked to is not followed by anybody, unless somebody asks for it.
    await phone.send({ type: 'end_voice_session' });
    await eventually(() => assert.equal(phone.agent(), undefined), long);
    const mark = async () => {
      const { participants } = await api(livekit, 'ListParticipants', { room: 'orphan' }, { roomAdmin: true, room: 'orphan' });
      return participants.find((p) => p.identity === 'ann').attributes['vela.agent_left'];
    };
    assert.equal(await mark(), 'ended');
    assert.equal((await fetch(`${other.url}/api/livekit/rooms/orphan/join`, { method: 'POST' })).status, 202);
    await eventually(() => assert.equal(phone.state(), 'listening'), long);
    await eventually(async () => assert.equal(await mark(), undefined), long);
    await phone.write('again');
    await answered(phone, 'You said again, after 1 others.');
  });

  test('the agent leaves after the last participant, and comes back with the conversation', async (t) => {
    const livekit = await startLiveKit();
    const gateway = await startGateway(livekit);
    afterwards(t, async () => {
      await gateway.stop();
      await livekit.stop();
    });
    const meet = async () => {
      const phone = await joinRoom(gateway, 'left', 'ann');
      afterwards(t, () => phone.leave());
      await eventually(() => assert.equal(phone.state(), 'listening'), long);
      return phone;
    };
    const phone = await meet();
    await phone.write('remember me');
    await answered(phone, 'You said remember me, after 0 others.');
    await phone.leave();
    await eventually(async () => assert.match(await metrics(gateway), /^vela_rooms 0$/m), long);
    const again = await meet();
    await again.write('do you');
    await answered(again, 'You said do you, after 1 others.');
  });

  test("the client's network is cut for 5 s in the middle of an answer, which arrives whole", async (t) => {
    const livekit = await startLiveKit({ media: mediaAddress });
    const network = await startNetwork(livekit);
    const gateway = await startGateway(livekit);
    afterwards(t, async () => {
      await gateway.stop();
      await network.stop();
      await livekit.stop();
    });
    // The agent comes first: what goes through the network then is its own, and stays.
    assert.equal((await fetch(`${gateway.url}/api/livekit/rooms/cut/join`, { method: 'POST' })).status, 202);
    await eventually(async () => {
      const { participants } = await api(livekit, 'ListParticipants', { room: 'cut' }, { roomAdmin: true, room: 'cut' });
      assert.deepEqual(participants.map((p) => [p.kind, p.state, p.attributes['lk.agent.state']]), [['AGENT', 'ACTIVE', 'listening']]);
    }, long);
    network.spare();
    const phone = await join(network.url, (await ticket(gateway, 'cut', 'ann')).participant_token);
    afterwards(t, () => phone.leave());
    await eventually(() => assert.equal(phone.state(), 'listening'), long);
    await phone.write('tell me a story');
    await eventually(() => assert.match(phone.agentSaid()[0]?.text ?? '', /Sentence 10/), long);
    network.cut();
    const before = phone.agentSaid()[0].text;
    await new Promise((cut) => setTimeout(cut, 5000));
    const more = phone.agentSaid()[0].text.length - before.length;
    assert.ok(more < story.length / 8, `the network was not cut: ${more} came`); // what was on its way
    network.mend();
    await eventually(() => assert.ok(phone.agentSaid()[0].text === story, `${phone.agentSaid()[0].text.length} of ${story.length}`), long);
    assert.deepEqual(phone.failures, []);
    await phone.write('hello');
    await answered(phone, 'You said hello, after 1 others.');
    const counted = await metrics(gateway);
    assert.match(counted, /^vela_rooms 1$/m);
    assert.doesNotMatch(counted, /vela_room_connections_total\{end="(lost|behind)"\} [1-9]/);
  });
});
