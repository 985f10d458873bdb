// The connection shell: the state of the transport, told apart from that of the session, through everything that can happen to a socket.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, startBrowser } from './lib/browser.mjs';
import { brokenSocket, event, messages, mocked, noGateway, visit } from './lib/page.mjs';
import { freePort } from './lib/ports.mjs';
import { startVela } from './lib/vela.mjs';

let browser, vela;
before(async () => ([browser, vela] = await Promise.all([startBrowser(), startVela(['--pace', '40ms'])])));
after(() => Promise.all([browser?.close(), vela?.stop()]));

const mockedTurn = [
  ['user', mocked.user],
  ['agent', mocked.answer],
];

/** A whole mocked turn, so that there is something that can stay. */
async function runTurn(shown) {
  await shown.mocked.click();
  await eventually(async () => assert.deepEqual((await shown.conversation()).at(-1), mockedTurn));
  await shown.idleAgain();
}

async function expectBanner(shown, words, action) {
  await eventually(async () => assert.equal(await shown.bannerWords(), words));
  if (action) assert.equal(await shown.bannerAction().innerText(), action);
  else assert.equal(await shown.bannerAction().count(), 0);
}

async function expectHelm(shown, title, small) {
  assert.equal(await shown.title(), title);
  assert.equal(await shown.small(), small);
}

/** That a lost connection was shown, with everything that belongs to it. It may be back by now. */
async function expectLost(shown) {
  const lost = await eventually(async () => {
    const states = await shown.seen('states');
    const state = states.find(({ connection, banner }) => connection === 'disconnected' && banner !== '');
    assert.ok(state, 'the loss was not shown');
    return state;
  });
  assert.equal(lost.connectionWord, 'Reconnecting');
  assert.equal(lost.sessionWord, 'Ended');
  assert.match(lost.banner, /^Connection lost\. Trying again in \d+ s\.$/);
  assert.equal(lost.action, 'Try now');
  assert.equal(lost.title, 'Connection lost');
  assert.deepEqual([lost.talk, lost.mocked, lost.stop], [false, false, false]);
  return lost;
}

async function expectAllOff(shown) {
  assert.deepEqual(
    await Promise.all([shown.talk, shown.mocked, shown.stop].map((control) => control.isEnabled())),
    [false, false, false],
  );
}

test('the page opens its socket directly to /ws of the gateway', async (t) => {
  const { sockets } = await visit(t, browser, vela, { direct: true });
  assert.deepEqual(sockets, [`ws://${vela.host}/ws?turns=deterministic`]);
});

test('the connection goes from connecting to connected before there is a session', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, {
    ready: false,
    before: (proxy) => {
      proxy.handshake = 'wait';
      proxy.holdFrom = () => true;
    },
  });
  await eventually(async () => assert.equal(await shown.connectionWord(), 'Connecting'));
  assert.equal(await shown.sessionWord(), 'No session');
  await expectHelm(shown, 'Connecting', 'Waiting for the session to be ready.');
  await expectAllOff(shown);
  proxy.handshake = 'pass';
  await eventually(async () => assert.equal(await shown.connectionWord(), 'Connected'));
  assert.equal(await shown.sessionWord(), 'No session');
  proxy.pass();
  await shown.ready();
  assert.deepEqual(await shown.states('connectionWord', 'sessionWord'), [
    ['Not connected', 'No session'],
    ['Connecting', 'No session'],
    ['Connected', 'No session'],
    ['Connected', 'Idle'],
  ]);
});

test('the session goes through its phases while the connection stays connected', async (t) => {
  const { shown } = await visit(t, browser, vela);
  await shown.forget();
  await runTurn(shown);
  assert.deepEqual(await shown.states('connection', 'session'), [
    ['connected', 'idle'],
    ['connected', 'listening'],
    ['connected', 'thinking'],
    ['connected', 'speaking'],
    ['connected', 'idle'],
  ]);
  assert.deepEqual(await shown.states('connectionWord', 'sessionWord'), [
    ['Connected', 'Idle'],
    ['Connected', 'Listening'],
    ['Connected', 'Thinking'],
    ['Connected', 'Speaking'],
    ['Connected', 'Idle'],
  ]);
});

test('both controls are off until session.ready arrives, and say why', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { ready: false, before: (proxy) => (proxy.holdFrom = () => true) });
  await eventually(async () => assert.equal(await shown.connection(), 'connected'));
  await expectAllOff(shown);
  assert.equal(await shown.description(shown.talk), 'Off: the session is not ready yet.');
  assert.equal(await shown.description(shown.mocked), 'Off: the session is not ready yet.');
  await expectHelm(shown, 'Connecting', 'Waiting for the session to be ready.');
  await shown.talk.dispatchEvent('pointerdown', { button: 0, isPrimary: true, pointerId: 1 });
  await shown.page.keyboard.press('Space');
  assert.deepEqual(proxy.sent, []);
  proxy.pass();
  await shown.ready();
  assert.equal(await shown.mocked.isEnabled(), true);
});

test('both controls are off while disconnected, and say why', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { expected: brokenSocket });
  proxy.handshake = 'wait';
  proxy.cut();
  await expectLost(shown);
  await expectAllOff(shown);
  assert.equal(await shown.description(shown.talk), 'Off: there is no connection to the gateway.');
  assert.equal(await shown.description(shown.mocked), 'Off: there is no connection to the gateway.');
  const off = (await shown.states('connection', 'session', 'talk', 'mocked')).filter(([c, s]) => c !== 'connected' || s === 'none');
  assert.ok(off.length > 0);
  for (const state of off) assert.deepEqual(state.slice(2), [false, false], `enabled while ${state[0]}, ${state[1]}`);
});

test('a lost connection is shown, what was said stays, and the page comes back to a new session', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { expected: brokenSocket });
  await runTurn(shown);
  await shown.forget();
  proxy.cut();
  assert.match((await expectLost(shown)).small, /^What was said stays here\./);
  await shown.ready();
  await expectBanner(shown, 'Connected again, to a new session. What was said before is not known to it.', 'Dismiss');
  assert.deepEqual(await shown.conversation(), [mockedTurn]);
  assert.deepEqual(await shown.states('connection'), ['connected', 'disconnected', 'connecting', 'connected']);
  await shown.bannerAction().click();
  await shown.noBanner();
  await runTurn(shown);
  assert.deepEqual(await shown.conversation(), [mockedTurn, mockedTurn]);
});

test('Try now does not wait for the next try', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { expected: brokenSocket });
  // The fourth wait is at least 4 s.
  proxy.handshake = 'refuse';
  proxy.cut();
  for (let tries = proxy.asked.length; tries < 4; tries = proxy.asked.length) {
    await shown.bannerAction().click();
    await eventually(() => assert.ok(proxy.asked.length > tries));
  }
  const seconds = await eventually(async () => {
    const [, seconds] = /^Connection lost\. Trying again in (\d+) s\.$/.exec(await shown.bannerWords());
    assert.ok(Number(seconds) >= 4);
    return Number(seconds);
  });
  proxy.handshake = 'pass';
  await shown.bannerAction().click();
  await eventually(async () => assert.equal(await shown.connection(), 'connected'), 1000 * (seconds - 1)); // before it would have by itself
  await shown.ready();
});

test('a turn that was running when the connection broke is marked, and nothing is active any more', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, {
    expected: brokenSocket,
    before: (proxy) => (proxy.holdFrom = (m) => m.includes(mocked.deltas[1])),
  });
  await shown.mocked.click();
  await eventually(async () => assert.deepEqual(await shown.conversation(), [[['user', mocked.user], ['agent', mocked.deltas[0]]]]));
  proxy.handshake = 'wait';
  proxy.cut();
  await expectLost(shown);
  assert.deepEqual(await shown.conversation(), [[['user', mocked.user], ['agent', mocked.deltas[0]]]]);
  assert.equal(await shown.page.locator('.cut').innerText(), 'the connection was lost');
  await expectAllOff(shown);
});

test('malformed server message', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  for (const [name, frame] of Object.entries({
    'text that is not JSON': '{"type":',
    'an empty frame': '',
    'JSON that is no object': '[1,2]',
    'an envelope without a type': '{"payload":{}}',
    'an envelope without a payload': '{"type":"session.state"}',
    'a payload of the wrong shape': '{"type":"session.state","payload":{"value":"sleeping"}}',
    'a binary frame': Buffer.from([1, 2, 3]),
  })) {
    await t.test(`${name} ends in the error state, and a new connection works`, async () => {
      await runTurn(shown);
      const before = await shown.conversation();
      proxy.inject(frame);
      await eventually(async () => assert.equal(await shown.connection(), 'error'));
      assert.equal(await shown.connectionWord(), 'Error');
      await expectBanner(shown, 'Connection error. The gateway sent a message that this page cannot read.', 'Connect again');
      await expectHelm(shown, 'Connection error', 'What was said stays here. Connect again to go on.');
      await expectAllOff(shown);
      assert.deepEqual(await shown.conversation(), before);
      await shown.bannerAction().click();
      await shown.ready();
    });
  }
});

test('a malformed message in the middle of a turn ends in the error state, and keeps what was shown', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { before: (proxy) => (proxy.holdFrom = (m) => m.includes(mocked.deltas[1])) });
  await shown.mocked.click();
  await eventually(async () => assert.equal((await shown.conversation())[0]?.length, 2));
  proxy.inject('nonsense');
  await eventually(async () => assert.equal(await shown.connection(), 'error'));
  assert.deepEqual(await shown.conversation(), [[['user', mocked.user], ['agent', mocked.deltas[0]]]]);
  await expectAllOff(shown);
});

test('a message of a type that the page does not know is no error', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  proxy.inject('{"type":"session.greeting","payload":{"text":"hello"}}');
  proxy.inject('{"type":"constructor","payload":{}}');
  await runTurn(shown);
  assert.deepEqual(await shown.states('connection'), ['not connected', 'connecting', 'connected']);
  await shown.noBanner();
});

test('browser WebSocket error: a gateway that drops the handshake ends in the error state', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, {
    ready: false,
    expected: brokenSocket,
    before: (proxy) => (proxy.handshake = 'refuse'),
  });
  await eventually(async () => assert.equal(await shown.connection(), 'error'));
  assert.match(await shown.bannerWords(), /^Connection error\./);
  assert.equal(await shown.bannerAction().innerText(), 'Connect again');
  assert.equal(await shown.title(), 'Connection error');
  await expectAllOff(shown);
  proxy.handshake = 'pass';
  await shown.bannerAction().click();
  await shown.ready();
  await runTurn(shown);
});

test('browser WebSocket error: a frame that breaks the protocol is shown as an error, then the page comes back', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela, { expected: brokenSocket });
  await runTurn(shown);
  await shown.forget();
  proxy.breakFrame();
  await shown.ready();
  await eventually(async () =>
    assert.deepEqual(await shown.states('connection'), ['connected', 'error', 'disconnected', 'connecting', 'connected']),
  );
  assert.deepEqual(await shown.conversation(), [mockedTurn]);
  await runTurn(shown);
});

test('gateway error event', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  const wrong = 'Something went wrong in the gateway. The session goes on.';
  for (const [code, words] of Object.entries({
    invalid_json: wrong,
    invalid_message: wrong,
    internal: wrong,
    a_code_of_the_future: wrong,
    mocked_turn_in_flight: 'A turn is still running.',
    turn_in_flight: 'A turn is still running.',
    audio_too_long: 'Too long: at most 10 minutes in one turn.',
    rate_limited: 'Too fast. Wait a moment.',
    agent_unavailable: /^\S.* is not there\. In the words of the gateway\.$/,
    agent_failed: /^\S.* stopped with an error\. In the words of the gateway\.$/,
    agent_timeout: /^\S.* did not answer in time\. Your words are kept\.$/,
    speech_unavailable: /^Recognition is not available\./,
    speech_failed: /^Recognition failed\./,
    session_limit: 'The gateway is full.',
  })) {
    await t.test(`${code} is shown in words, and the session goes on`, async () => {
      proxy.inject(event('error', { code, message: 'In the words of the gateway.', retryable: true }));
      await eventually(async () => {
        if (words instanceof RegExp) assert.match(await shown.bannerWords(), words);
        else assert.equal(await shown.bannerWords(), words);
      });
      assert.equal(await shown.connection(), 'connected');
      assert.equal(await shown.session(), 'idle');
      await runTurn(shown);
      await shown.noBanner();
    });
  }
  assert.equal(proxy.asked.length, 1);
});

test('a real error event of the gateway during a turn does not disturb it', async (t) => {
  const slow = await startVela(['--pace', '1s']);
  afterwards(t, () => slow.stop());
  const { shown, proxy } = await visit(t, browser, slow);
  await shown.mocked.click();
  await eventually(async () => assert.notEqual(await shown.session(), 'idle'));
  proxy.send(messages.trigger);
  await eventually(async () => assert.equal(await shown.bannerWords(), 'A turn is still running.'));
  await eventually(async () => assert.deepEqual(await shown.conversation(), [mockedTurn]));
  await shown.idleAgain();
  assert.equal(proxy.given.filter((m) => m.includes('"mocked_turn_in_flight"')).length, 1);
  assert.equal(await shown.connection(), 'connected');
});

test('1001: a gateway that stops and starts again on its port is found again', async (t) => {
  let own = await startVela(['--pace', '20ms'], `127.0.0.1:${await freePort()}`);
  afterwards(t, () => own.stop());
  const { shown, sockets } = await visit(t, browser, own, { direct: true, expected: noGateway });
  await runTurn(shown);
  await shown.forget();
  assert.equal((await own.stop()).code, 0);
  await eventually(async () => assert.equal((await shown.seen('closeCodes'))[0], 1001));
  await expectLost(shown);
  own = await startVela(['--pace', '20ms'], own.host);
  await eventually(() => shown.ready());
  await expectBanner(shown, 'Connected again, to a new session. What was said before is not known to it.', 'Dismiss');
  assert.ok(sockets.length >= 2);
  await runTurn(shown);
  assert.deepEqual(await shown.conversation(), [mockedTurn, mockedTurn]);
});

test('1009: a message too big is named, and a new connection works', async (t) => {
  const { page, shown } = await visit(t, browser, vela, { direct: true });
  await page.evaluate((message) => window.seen.sockets[0].send(message), event('input_audio.append', { chunk: 'x'.repeat(2 << 20) }));
  await expectBanner(shown, 'The gateway closed the connection: a message was too big.', 'Connect again');
  assert.equal(await shown.connectionWord(), 'Disconnected');
  assert.equal(await shown.sessionWord(), 'Ended');
  await shown.bannerAction().click();
  await shown.ready();
});

test('4004: a full gateway is named, and can be tried again', async (t) => {
  const own = await startVela(['--max-sessions', '1', '--pace', '20ms']);
  afterwards(t, () => own.stop());
  const other = new WebSocket(`ws://${own.host}/ws`);
  await once(other, 'message');
  const { shown } = await visit(t, browser, own, { direct: true, ready: false, expected: brokenSocket });
  await expectBanner(shown, 'The gateway is full.', 'Try again');
  // The error event comes first, and says the same; then the connection is closed.
  await eventually(async () => {
    assert.deepEqual(await shown.seen('closeCodes'), [4004]);
    assert.equal(await shown.connectionWord(), 'Disconnected');
  });
  await expectBanner(shown, 'The gateway is full.', 'Try again');
  await expectAllOff(shown);
  other.close();
  await once(other, 'close');
  await eventually(async () => {
    await shown.bannerAction().click({ timeout: 500 }).catch(() => {});
    await eventually(() => shown.ready(), 500);
  });
  await runTurn(shown);
});

test('4005: a session closed for idleness is named, and a new one can be started', async (t) => {
  const own = await startVela(['--idle', '6s', '--pace', '20ms']);
  afterwards(t, () => own.stop());
  const { shown } = await visit(t, browser, own, { direct: true });
  await runTurn(shown);
  // The page counts from when it had the end of the turn, which on a busy machine is later than the gateway said it.
  await eventually(async () => assert.match(await shown.bannerWords(), /^Disconnected\. Closed after [456] seconds without a turn\.$/));
  assert.equal(await shown.bannerAction().innerText(), 'Start a new session');
  assert.equal(await shown.connectionWord(), 'Disconnected');
  assert.equal(await shown.sessionWord(), 'Ended');
  assert.deepEqual(await shown.conversation(), [mockedTurn]);
  await shown.bannerAction().click();
  await shown.ready();
});

test('1008: a gateway that refuses the page is named, and is not asked again', async (t) => {
  const { shown, proxy } = await visit(t, browser, vela);
  proxy.close(1008);
  await expectBanner(shown, 'The gateway refused this page.', null);
  assert.equal(await shown.connectionWord(), 'Disconnected');
  assert.equal(proxy.asked.length, 1);
});

for (const code of [1011, 4003]) {
  test(`${code}: the page comes back by itself`, async (t) => {
    const { shown, proxy } = await visit(t, browser, vela);
    proxy.close(code);
    await expectLost(shown);
    await shown.ready();
    await eventually(() => assert.equal(proxy.asked.length, 2));
  });
}

test('a session that was ended by hand is not connected, until Connect', async (t) => {
  const { page, shown } = await visit(t, browser, vela);
  await runTurn(shown);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'End session' }).click();
  await page.getByRole('button', { name: 'Close settings' }).click();
  assert.equal(await shown.connectionWord(), 'Not connected');
  assert.equal(await shown.sessionWord(), 'No session');
  await expectBanner(shown, 'Not connected. Nothing is sent and nothing is heard.', 'Connect');
  assert.equal(await shown.title(), 'Not connected');
  await expectAllOff(shown);
  assert.deepEqual(await shown.conversation(), [mockedTurn]);
  await shown.bannerAction().click();
  await shown.ready();
});
