// Phones in a room of the real LiveKit server, and the built program as their agent.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dispose } from '@livekit/rtc-node';
import WebSocket from 'ws';
import { afterwards } from '../browser/lib/afterwards.mjs';
import { eventually } from '../browser/lib/browser.mjs';
import { startAgents } from '../browser/lib/models.mjs';
import { speak } from '../browser/lib/speech.mjs';
import { key, secret, startLiveKit } from './lib/livekit.mjs';
import { joinRoom } from './lib/phone.mjs';
import { lastSaid, startModel, toolsSince } from './lib/model.mjs';

const long = 30_000;
const book = Array.from({ length: 1700 }, (_, i) => `Line ${i} of the new book, which is about ships and the sea.`).join('\n');

async function* answer(messages, ended) {
  const said = lastSaid(messages);
  const done = toolsSince(messages);
  if (/time/.test(said)) {
    if (done === 0) yield { name: 'read_file', arguments: { path: 'notes/clock.txt' } };
    else yield* ['It is ', 'half past nine.'];
  } else if (/book/.test(said)) {
    if (done === 0) yield { name: 'write_file', arguments: { path: 'book.txt', content: book } };
    else yield 'The book is written.';
  } else if (/story/.test(said)) {
    for (let i = 1; i < 200 && !ended(); i++) {
      yield `This is sentence number ${i} of the story. `;
      await new Promise((next) => setTimeout(next, 60));
    }
  } else {
    yield `You said ${said}, after ${messages.filter((m) => m.role === 'user').length - 1} others.`;
  }
}

let livekit, model, vela, question, other, patient;
before(async () => {
  question = speak('what time is it', { before: 0.3, after: 1 }).file;
  patient = speak('what time is it', { before: 0.3, after: 2.5 }).file;
  other = speak('tell me about london', { before: 0.3, after: 0.3 }).file;
  [livekit, model] = await Promise.all([startLiveKit(), startModel(answer)]);
  Object.assign(process.env, { LIVEKIT_URL: livekit.url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret });
  vela = await startAgents([
    `model: {kind: openai, url: "${model.url}", model: m, tools: {root: project, rules: {write_file: allow}}}`,
    `careful: {kind: openai, url: "${model.url}", model: m, tools: {root: project, rules: {write_file: ask}}}`,
    'parrot: {kind: echo}',
  ]);
});
after(async () => {
  await vela?.stop();
  await Promise.all([livekit?.stop(), model?.stop()]);
  await dispose();
});

let rooms = 0;
/** A phone in a room of its own, or in that one, with the agent there. */
async function meet(t, identity = 'ann', room = `room ${++rooms}`) {
  const phone = await joinRoom(vela, room, identity);
  afterwards(t, () => phone.leave());
  await eventually(() => assert.equal(phone.state(), 'listening'), long);
  return Object.assign(phone, { name: room });
}

const answered = (phone, text) => eventually(() => assert.deepEqual(phone.agentSaid().map((row) => [row.text, row.ended]).at(-1), [text, true]), long);
const heard = (phone) => phone.userSaid().at(-1);

test('speech is transcribed, a tool is shown, and the answer comes in writing and in sound', async (t) => {
  const phone = await meet(t);
  await phone.say(question);
  await answered(phone, 'It is half past nine.');
  const spoken = phone.userSaid();
  assert.ok(spoken.length > 1 && spoken.slice(0, -1).every((row) => !row.final), 'no partial transcript');
  assert.deepEqual(new Set(spoken.map((row) => row.segment)).size, 1);
  assert.deepEqual(heard(phone), { segment: spoken[0].segment, track: phone.sid, from: 'ann', final: true, text: 'what time is it', ended: true });
  const [row] = phone.agentSaid();
  assert.ok(row.final && row.segment !== heard(phone).segment);
  const status = phone.events.find((e) => e.action === 'reading_file');
  assert.equal(status.detail, 'notes/clock.txt');
  const artifact = phone.events.find((e) => e.type === 'artifact');
  assert.equal(artifact.segmentId, row.segment);
  assert.equal(phone.events.filter((e) => e.type === 'content').map((e) => e.delta).join(''), row.text);
  assert.ok(phone.order.indexOf('status:reading_file') < phone.order.indexOf('artifact:file') && phone.order.indexOf('artifact:file') < phone.order.indexOf(`said:${row.segment}`), phone.order.join());
  await eventually(() => assert.ok(phone.sound.loud > 24000 / 2, `${phone.sound.loud} samples`), long);
  await eventually(() => assert.equal(phone.state(), 'listening'), long);
  assert.deepEqual(phone.failures, []);
});

test('a diff of more than 100 KB arrives whole, in packets of at most 14,336 bytes', async (t) => {
  const phone = await meet(t);
  await phone.write('write the book');
  await answered(phone, 'The book is written.');
  const artifact = phone.events.find((e) => e.artifact_type === 'diff');
  const lines = artifact.diff.split('\n').filter((line) => line.startsWith('+Line '));
  assert.ok(artifact.diff.length > 100_000 && lines.length === 1700 && lines.every((line, i) => line === `+${book.split('\n')[i]}`));
  assert.ok(phone.packets.length > 9 && Math.max(...phone.packets) <= 14336, `${Math.max(...phone.packets)}`);
  assert.equal(vela.file('book.txt'), book);
  assert.deepEqual(phone.failures, []);
});

test('who speaks over the answer silences it, and is answered', async (t) => {
  const phone = await meet(t);
  await phone.write('tell me a story');
  await eventually(() => assert.ok(phone.sound.loud > 24000), long);
  await phone.say(question);
  await answered(phone, 'It is half past nine.');
  const story = phone.agentSaid()[0];
  assert.ok(story.ended && !story.text.includes('number 199'), story.text);
  const history = model.asked.at(-1).find((m) => m.role === 'assistant' && /sentence/.test(m.content)).content;
  assert.ok(history.length < story.text.length, 'the agent thinks that all of it was heard');
});

test('chat and the commands of ganglia-events', async (t) => {
  const phone = await meet(t);
  await phone.send({ type: 'tts-mode', value: 'off' });
  await phone.write('hello');
  await answered(phone, 'You said hello, after 0 others.');
  assert.deepEqual(heard(phone), { segment: heard(phone).segment, track: undefined, from: 'ann', final: true, text: 'hello', ended: true });
  await phone.send({ type: 'nonsense' });
  await phone.send({ type: 'text_message', text: '   ' });
  await phone.send({ type: 'text_message', text: 'again' });
  await answered(phone, 'You said again, after 1 others.');
  assert.equal(phone.sound.loud, 0);
  await phone.send({ type: 'tts-mode', value: 'on' });
  await phone.send({ type: 'text_message', text: 'aloud' });
  await eventually(() => assert.ok(phone.sound.loud > 0), long);
  await phone.send({ type: 'end_voice_session' });
  await eventually(() => assert.equal(phone.agent(), undefined), long);
});

test('participants call by RPC: cancel, another agent, a yes to a tool, what was said', async (t) => {
  const phone = await meet(t);
  await phone.write('tell me a story');
  await eventually(() => assert.ok(phone.agentSaid().length > 0), long);
  assert.equal(await phone.call('response.cancel'), '{}');
  await eventually(() => assert.ok(phone.agentSaid()[0].ended), long);
  await eventually(() => assert.equal(phone.state(), 'listening'), long);
  assert.equal(await phone.call('session.start', { agent: 'parrot' }), '{}');
  await phone.write('pretty bird');
  await answered(phone, 'You said: pretty bird');
  await eventually(() => assert.equal(phone.state(), 'listening'), long);
  assert.deepEqual(JSON.parse(await phone.call('history.get')).items.slice(-2).map((item) => [item.role, item.text]), [['user', 'pretty bird'], ['assistant', 'You said: pretty bird']]);
  assert.equal(await phone.call('input_audio.clear'), '{}');
  await assert.rejects(phone.call('session.start', { agent: 'nobody' }), /cannot give that agent/);
  await assert.rejects(phone.call('session.start', { turns: 'deterministic' }), /agent, voice, approvals/);
  await assert.rejects(phone.call('approval.answer', { approvalId: 'a9.9', allow: true }), /No such question/);
  await eventually(async () => assert.equal(await phone.call('session.start', { agent: 'careful', approvals: true }), '{}'), long);
  await phone.write('write the book');
  const ask = await eventually(() => phone.vela.find((e) => e.type === 'approval.request') ?? assert.fail('no question'), long);
  assert.equal(ask.payload.name, 'write_file');
  assert.equal(await phone.call('approval.answer', { approvalId: ask.payload.approvalId, allow: true }), '{}');
  await answered(phone, 'The book is written.');
});

test('of two people, the one who spoke first has the floor; both see who said what', async (t) => {
  const ann = await meet(t);
  const bob = await meet(t, 'bob', ann.name);
  const saying = ann.say(patient);
  await eventually(() => assert.ok(bob.userSaid().some((row) => row.from === 'ann')), long); // she has the floor until she is muted again
  await Promise.all([bob.say(other), saying]);
  for (const phone of [ann, bob]) await answered(phone, 'It is half past nine.');
  for (const phone of [ann, bob]) assert.deepEqual([heard(phone).from, heard(phone).text], ['ann', 'what time is it']);
  await eventually(() => assert.equal(ann.state(), 'listening'), long);
  await bob.say(other);
  await eventually(() => assert.ok(heard(ann).final && /london/.test(heard(ann).text) && heard(ann).from === 'bob' && heard(ann).track === bob.sid), long);
  await bob.leave();
  await ann.write('still here');
  await eventually(() => assert.match(ann.agentSaid().at(-1).text, /still here/), long);
});

test('a conversation begins on the socket, is mirrored into a room, and goes on there alone', async (t) => {
  const socket = new WebSocket(`ws://${vela.host}/ws`, ['vela.v2']);
  afterwards(t, () => socket.terminate());
  const events = [];
  socket.on('message', (text) => events.push(JSON.parse(text)));
  await new Promise((open) => socket.on('open', open));
  const send = (type, payload) => socket.send(JSON.stringify({ type, payload }));
  send('session.start', { turns: 'agent', room: 'move' });
  await eventually(() => assert.equal(events.find((e) => e.type === 'session.ready')?.payload.room, 'move'), long);
  send('input_text.submit', { text: 'one' });
  await eventually(() => assert.ok(events.some((e) => e.type === 'response.completed')), long);
  const phone = await meet(t, 'ann', 'move');
  send('input_text.submit', { text: 'two' });
  await answered(phone, 'You said two, after 1 others.');
  await phone.write('three');
  await eventually(() => assert.ok(events.some((e) => e.type === 'transcript.final' && e.payload.text === 'three')), long);
  await answered(phone, 'You said three, after 2 others.');
  socket.close();
  await phone.write('four');
  await answered(phone, 'You said four, after 3 others.');
});

test('two gateways, one room: the second agent leaves', async (t) => {
  const second = await startAgents(['parrot: {kind: echo}']);
  afterwards(t, () => second.stop());
  const phone = await meet(t);
  const first = phone.agent().identity;
  for (const gateway of [vela, second]) {
    assert.equal((await fetch(`${gateway.url}/api/livekit/rooms/${encodeURIComponent(phone.name)}/join`, { method: 'POST' })).status, 202);
  }
  await eventually(async () => {
    const text = await (await fetch(`${second.url}/metrics`)).text() + await (await fetch(`${vela.url}/metrics`)).text();
    assert.match(text, /vela_room_connections_total\{end="other_agent"\} 1/);
  }, long);
  await eventually(() => assert.deepEqual(phone.agents().map((a) => a.identity), [first]), long);
});
