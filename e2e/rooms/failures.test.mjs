// What goes wrong around a room: each ends in a working conversation, or in a clear event.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { after, before, test } from 'node:test';
import { dispose } from '@livekit/rtc-node';
import WebSocket from 'ws';
import { afterwards } from '../browser/lib/afterwards.mjs';
import { eventually } from '../browser/lib/browser.mjs';
import { startAgents } from '../browser/lib/models.mjs';
import { startVela } from '../browser/lib/vela.mjs';
import { api, key, secret, sign, startLiveKit } from './lib/livekit.mjs';
import { lastSaid, startModel } from './lib/model.mjs';
import { join, joinRoom, ticket } from './lib/phone.mjs';

const long = 40_000;

let asked = 0; // files, so far
async function* answer(messages, ended) {
  const said = lastSaid(messages);
  if (/story/.test(said)) {
    for (let i = 1; i < 600 && !ended(); i++) {
      yield `Sentence ${i}. `;
      await new Promise((next) => setTimeout(next, 50));
    }
  } else if (/files/.test(said)) {
    if (asked < 500) for (let i = 0; i < 25; i++) yield { name: 'read_file', arguments: { path: `sizes/${asked++}.txt` } };
    else yield 'All read.';
  } else {
    yield `You said ${said}.`;
  }
}

let livekit, model, vela;
const env = () => ({ LIVEKIT_URL: livekit.url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret });
before(async () => {
  [livekit, model] = await Promise.all([startLiveKit(), startModel(answer)]);
  Object.assign(process.env, env());
  vela = await startAgents([`model: {kind: openai, url: "${model.url}", model: m, rounds: 40, time: 5m, tools: {root: project}}`]);
});
after(async () => {
  await vela?.stop();
  await Promise.all([livekit?.stop(), model?.stop()]);
  await dispose();
});

async function meet(t, room, identity = 'ann', state = 'listening') {
  const phone = await joinRoom(vela, room, identity);
  afterwards(t, () => phone.leave());
  await eventually(() => assert.equal(phone.state(), state), long);
  return phone;
}
const answered = (phone, text) => eventually(() => assert.deepEqual(phone.agentSaid().map((row) => [row.text, row.ended]).at(-1), [text, true]), long);
const metric = async (name) => Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\S+)`, 'm').exec(await (await fetch(`${vela.url}/metrics`)).text())?.[1] ?? 0);

test('five hundred artifacts of mixed sizes arrive whole and in order', { timeout: 120_000 }, async (t) => {
  mkdirSync(joinPath(vela.project, 'sizes'));
  const text = (i) => Array.from({ length: 1 + ((i * 7919) % (i % 10 === 0 ? 900 : 60)) }, (_, n) => `File ${i}, line ${n}, which says nothing much.`).join('\n');
  for (let i = 0; i < 500; i++) writeFileSync(joinPath(vela.project, 'sizes', `${i}.txt`), text(i));
  const socket = new WebSocket(`ws://${vela.host}/ws`, ['vela.v2']);
  afterwards(t, () => socket.terminate());
  const shown = []; // on the socket: the room must be shown the same, in the same order
  socket.on('message', (frame) => {
    const { type, payload } = JSON.parse(frame);
    if (type === 'status' || type === 'artifact') shown.push({ type, ...payload });
  });
  await new Promise((open) => socket.on('open', open));
  socket.send(JSON.stringify({ type: 'session.start', payload: { turns: 'agent', room: 'order' } }));
  const phone = await meet(t, 'order');
  await phone.write('read the files');
  await eventually(() => assert.equal(phone.agentSaid().at(-1)?.text, 'All read.'), 100_000);
  const seen = await eventually(() => {
    const all = phone.events.filter((e) => e.type === 'status' || e.type === 'artifact').map(({ segmentId, ...rest }) => rest);
    assert.deepEqual(all, shown.map(({ segmentId, ...rest }) => rest));
    return all;
  }, long);
  const artifacts = seen.filter((e) => e.type === 'artifact');
  assert.deepEqual(new Set(artifacts.map((e) => `${e.path}: ${e.content.length}`)).size, 500);
  assert.ok(phone.packets.length > 600 && Math.max(...phone.packets) <= 14336);
  assert.deepEqual(phone.failures, []);
});

test('the server is killed in the middle of an answer, and comes back', async (t) => {
  const phone = await meet(t, 'crash');
  await phone.write('tell me a story');
  await eventually(() => assert.match(phone.agentSaid()[0]?.text ?? '', /Sentence 10/), long);
  await livekit.kill();
  livekit = await startLiveKit(livekit);
  await eventually(async () => {
    const { participants } = await api(livekit, 'ListParticipants', { room: 'crash' }, { roomAdmin: true, room: 'crash' });
    const agent = participants.find((p) => p.kind === 'AGENT');
    assert.deepEqual([agent?.state, agent?.tracks.length, agent?.attributes['lk.agent.state']], ['ACTIVE', 1, 'speaking']);
  }, long);
  await phone.leave(); // this client comes back without its tracks and its neighbours, now and then
  const again = await meet(t, 'crash', 'ann', 'speaking');
  await again.write('hello');
  await answered(again, 'You said hello.');
  assert.match(JSON.stringify(model.asked.at(-1)), /tell me a story/); // and what was heard of the answer, if anything
});

test('the room is deleted, and made again', async (t) => {
  const phone = await meet(t, 'deleted');
  const before = await metric('vela_room_connections_total{end="removed"}');
  await api(livekit, 'DeleteRoom', { room: 'deleted' }, { roomCreate: true });
  await eventually(async () => assert.equal(await metric('vela_room_connections_total{end="removed"}'), before + 1), long);
  await eventually(() => assert.ok(phone.gone !== null), long);
  const again = await meet(t, 'deleted');
  await again.write('hello');
  await answered(again, 'You said hello.');
});

test('a token is good for its own room alone, and for a participant', async () => {
  const { server_url, participant_token } = await ticket(vela, 'mine', 'ann', { participant_name: 'Ann', participant_attributes: { colour: 'blue' } });
  const claims = JSON.parse(Buffer.from(participant_token.split('.')[1], 'base64url'));
  assert.deepEqual(claims.video, {
    roomJoin: true, room: 'mine', canPublish: true, canSubscribe: true, canPublishData: true, canUpdateOwnMetadata: true, canPublishSources: ['microphone'],
  });
  assert.equal(server_url, livekit.url);
  assert.ok(claims.exp - Date.now() / 1000 < 901 && claims.sub === 'ann' && claims.name === 'Ann' && claims.attributes.colour === 'blue' && claims.kind === undefined);
  const other = await fetch(`${livekit.http}/rtc/validate?access_token=${participant_token}&room=other`);
  const admin = await fetch(`${livekit.http}/twirp/livekit.RoomService/ListRooms`, {
    method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${participant_token}` }, body: '{}',
  });
  assert.equal(admin.status, 401);
  assert.ok(!(await other.text()).includes('other'));
});

test('a token whose time is over, or has not come, lets nobody in', async () => {
  const says = async (options) => (await fetch(`${livekit.http}/rtc/validate?access_token=${sign({ roomJoin: true, room: 'clock' }, options)}`)).status;
  assert.deepEqual([await says({}), await says({ ttl: -120 }), await says({ from: 3600, ttl: 7200 })], [200, 401, 401]);
  await assert.rejects(join(livekit.url, sign({ roomJoin: true, room: 'clock' }, { ttl: -120 })));
});

test('what the token endpoint does not take', async () => {
  const ask = (body, headers = { 'content-type': 'application/json' }) => fetch(`${vela.url}/api/livekit/token`, { method: 'POST', headers, body });
  const made = await ask('');
  assert.equal(made.status, 201);
  for (const [body, status] of [['[]', 400], ['{', 400], ['{"room_config":{"agents":[{"agent_name":"x"}]}}', 400], ['{"participant_identity":"agent-1"}', 400], [`{"room_name":"${'x'.repeat(200)}"}`, 400], [JSON.stringify({ participant_metadata: 'x'.repeat(20000) }), 413]]) {
    assert.equal((await ask(body)).status, status, body.slice(0, 60));
  }
  assert.equal((await ask('{}', { 'content-type': 'text/plain' })).status, 415);
  assert.equal((await ask('{}', { 'content-type': 'application/json', origin: 'https://evil.example' })).status, 403);
  assert.equal((await fetch(`${vela.url}/api/livekit/rooms/${'x'.repeat(200)}/join`, { method: 'POST' })).status, 400);
});

test('a webhook brings an agent, and only if LiveKit signed it', async (t) => {
  const named = await startVela(['--turns', 'agent'], '127.0.0.1:0', env());
  afterwards(t, () => named.stop());
  const tell = (event, options) => {
    const body = JSON.stringify(event);
    return fetch(`${named.url}/api/livekit/webhook`, {
      method: 'POST', body,
      headers: { 'content-type': 'application/webhook+json', authorization: sign({}, { sha256: createHash('sha256').update(body).digest('base64'), ...options }) },
    });
  };
  const joined = { event: 'participant_joined', room: { name: 'hooked' }, participant: { identity: 'ann', kind: 'STANDARD' } };
  assert.equal((await tell(joined, { apiSecret: 'another-secret-another-secret-another' })).status, 401);
  assert.equal((await tell(joined, { sha256: 'x' })).status, 401);
  assert.equal((await tell({ event: 'room_started', pad: 'x'.repeat(300_000) })).status, 401);
  assert.equal((await tell({ event: 'participant_left', room: { name: 'nobody' } })).status, 200);
  assert.equal((await tell(joined)).status, 200);
  await eventually(async () => assert.match(await (await fetch(`${named.url}/metrics`)).text(), /^vela_rooms 1$/m), long);
});

test('packets of 1 MB, nonsense and JSON bombs hurt nobody', async (t) => {
  const phone = await meet(t, 'bombs');
  const bob = await meet(t, 'bombs', 'bob');
  const send = (bytes) => bob.room.localParticipant.publishData(bytes, { reliable: true, topic: 'ganglia-events' }).catch(() => {});
  await send(new Uint8Array(1 << 20));
  await send(new TextEncoder().encode('['.repeat(15_000)));
  await send(new TextEncoder().encode('{"type":"chunk","transfer_id":"x","chunk_index":0,"total_chunks":1e9,"data":""}'));
  await send(new Uint8Array([0xff, 0xfe, 0]));
  await bob.write('x'.repeat(70_000));
  await phone.write('hello');
  await answered(phone, 'You said hello.');
});

test('with a wrong key, or no server, the gateway serves on and says what is wrong', async (t) => {
  for (const [variables, words] of [
    [{ ...env(), LIVEKIT_API_SECRET: 'wrong-secret-wrong-secret-wrong-secret' }, /does not take our key/],
    [{ ...env(), LIVEKIT_URL: 'ws://127.0.0.1:9' }, /LiveKit is not there/],
  ]) {
    const alone = await startVela([], '127.0.0.1:0', variables);
    afterwards(t, () => alone.stop());
    await eventually(() => assert.match(alone.log, words), long);
    assert.ok(!alone.log.includes('secret-wrong') && !/access_token|eyJ/.test(alone.log), alone.log);
    assert.equal((await fetch(`${alone.url}/healthz`)).status, 200);
  }
  const none = await startVela([], '127.0.0.1:0', { LIVEKIT_URL: '' });
  afterwards(t, () => none.stop());
  assert.equal((await fetch(`${none.url}/api/livekit/token`, { method: 'POST' })).status, 404);
  await assert.rejects(join(livekit.url, sign({ roomJoin: true, room: 'x' }, { apiSecret: 'wrong-secret-wrong-secret-wrong-secret' })));
});

test('nothing is left behind by rooms that come and go', async () => {
  const visit = async (name) => {
    const phone = await joinRoom(vela, name, 'ann');
    await eventually(() => assert.equal(phone.state(), 'listening'), long);
    await phone.write('hello');
    await answered(phone, 'You said hello.');
    await phone.send({ type: 'end_voice_session' });
    await eventually(() => assert.equal(phone.agent(), undefined), long);
    await phone.leave();
  };
  const before = await metric('vela_rooms');
  const sessions = await metric('vela_sessions');
  await visit('warm');
  const goroutines = await eventually(async () => {
    assert.equal(await metric('vela_rooms'), before);
    return metric('go_goroutines');
  }, long);
  for (let i = 0; i < 6; i++) await visit(`guest ${i}`);
  // A session waits to be come back to, with a goroutine of its own.
  await eventually(async () => {
    const waiting = (await metric('vela_sessions')) - sessions - 1;
    assert.ok((await metric('go_goroutines')) <= goroutines + waiting, `${await metric('go_goroutines')}, ${goroutines} and ${waiting} before`);
  }, long);
});
