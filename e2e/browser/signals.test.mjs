// The views of signals and of wiring: the built program, what is posted to it, and a source that the test serves.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { afterwards } from './lib/afterwards.mjs';
import { eventually, startBrowser } from './lib/browser.mjs';
import { barriers, faint, picture, sideways, tabStops, unexplained } from './lib/looks.mjs';
import { visit } from './lib/page.mjs';
import { startVela } from './lib/vela.mjs';

const folder = mkdtempSync(join(tmpdir(), 'vela-signals-'));
const wiringFile = join(folder, 'wiring.json');
const wiring = {
  choreographies: [
    { id: 'lantern', on: 'tool_call', interrupts: true },
    { id: 'bell', on: 'error' },
  ],
  wires: [
    { id: 'calls', fromZone: 'signal-type', fromId: 'tool_call', toZone: 'choreographer', toId: 'lantern', filters: [{ type: 'sample', every: 2 }, { type: 'when', clause: { agentId: { equals: 'a' } } }] },
    { id: 'errors', fromZone: 'signal-type', fromId: 'error', toZone: 'choreographer', toId: 'bell' },
  ],
  bindings: [
    { id: 'b', targetEntityId: 'lamp', property: 'opacity', sourceChoreographyId: 'lantern', sourceType: 'float' },
    { id: 's', targetEntityId: 'keeper', property: 'speech', sourceChoreographyId: 'bell', sourceType: 'event' },
  ],
};
writeFileSync(wiringFile, JSON.stringify(wiring));

let browser, vela;
before(async () => ([browser, vela] = await Promise.all([startBrowser(), startVela(['--wiring', wiringFile])])));
after(async () => {
  await Promise.all([browser?.close(), vela?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

async function post(signal) {
  const answer = await fetch(`${vela.url}/api/signal`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(signal) });
  assert.equal(answer.status, 200);
}

/** A page with this view, and what a test asks of it. Each test has an episode of its own, since the log is that of all of them. */
async function watch(t, view, options = {}) {
  const visited = await visit(t, browser, vela, { direct: true, ...options });
  const { page } = visited;
  await page.evaluate((hash) => void (location.hash = hash), view);
  await page.locator(view === 'signals' ? '#signals' : '.wiring').waitFor();
  const text = (selector) => page.locator(selector).evaluate((e) => e.textContent.replace(/\s+/g, ' ').trim());
  return {
    ...visited,
    text,
    reads: (selector, wanted) =>
      eventually(async () => {
        const read = await text(selector);
        const below = await page.locator('.foot').allInnerTexts(); // it says whether the list is held, and why
        assert.match(read, wanted, `${selector} is ${JSON.stringify(read)}, want ${wanted}; below it stands ${JSON.stringify(below)}`);
      }),
    /** The rows that are drawn, from top to bottom: type, summary and how often. */
    rows: () =>
      page.evaluate(() =>
        [...document.querySelectorAll('.signal:not([hidden])')]
          .sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex'))
          .map((row) => ['.type', '.summary', '.times'].map((s) => row.querySelector(s).textContent)),
      ),
  };
}

/** What was posted in this test alone. */
const only = (page, word) => page.locator('#find').fill(word);

test('signals are rows: folded, sorted by kind, found, held, and looked at as a whole', async (t) => {
  const { page, rows, reads } = await watch(t, 'signals');
  const see = (...wanted) => eventually(async () => assert.deepEqual(await rows(), wanted));
  const episode = { correlationId: 'marble-1', source: 'marble' };
  await post({ type: 'deploy', payload: { step: 1 } });
  await only(page, 'marble');
  await reads('.nothing', /Nothing matches/);
  await post({ type: 'tool_call', ...episode, payload: { toolName: 'Edit', agentId: 'a', input: { path: 'session/fsm.go' } } });
  for (const content of ['Because ', 'the ', 'tide ', 'turns']) await post({ type: 'text_delta', ...episode, payload: { agentId: 'a', content } });
  await post({ type: 'error', ...episode, payload: { message: '<img src=x onerror=alert(1)>', severity: 'error' } });
  await post({ type: 'event', source: 'marble', payload: { _meta: { heartbeat: true } } });
  const call = ['tool_call', 'Edit session/fsm.go', ''];
  const said = ['text_delta', 'Because the tide turns', '×4'];
  const failed = ['error', '<img src=x onerror=alert(1)>', ''];
  await see(call, said, failed);
  assert.equal(await page.locator('#signals').getAttribute('aria-rowcount'), '3');
  await page.locator('#kind-quiet').click();
  await see(call, said, failed, ['event', '', '']);
  await page.locator('#kind-quiet').click();
  await page.locator('#kind-text').click();
  await see(call, failed);
  await page.locator('#kind-text').click();

  // A selection holds the list, and shows all that there is.
  await page.locator('.signal', { hasText: 'Because' }).click();
  await reads('#detail h2', /^text_delta$/);
  await reads('#detail', /4 pieces ?Because the tide turns ?Payload of the first.*Episode, 6 signals/);
  assert.equal(await page.locator('.signal[data-episode~="in"]').count(), 3);
  await post({ type: 'completion', ...episode, payload: { taskId: 't', success: true } });
  await reads('#follow', /^1 newer, follow again$/);
  await see(call, said, failed);
  await page.locator('#follow').click();
  await see(call, said, failed, ['completion', 'done', '']);

  await page.locator('#pause').click();
  await post({ type: 'completion', ...episode, payload: { taskId: 't', success: false } });
  await reads('.foot', /^Paused\. ?[\d,]+ signals are kept\. ?1 newer, follow again/);
  await page.locator('#pause').click();
  await eventually(async () => assert.equal((await rows()).length, 5));
  await only(page, '');
});

test('by key alone: a signal is found, looked at and left; typing a word opens no microphone', async (t) => {
  const { page, shown, reads } = await watch(t, 'signals', { turns: 'agent' });
  for (let n = 0; n < 5; n++) await post({ type: 'deploy', source: 'granite', payload: { n } });
  await page.keyboard.press('/');
  await page.keyboard.type('granite');
  await eventually(async () => assert.equal(await page.locator('.signal:not([hidden])').count(), 5));
  await page.locator('#signals').focus();
  await page.keyboard.press(' ');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  const active = () => page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.querySelector('.summary').textContent);
  await eventually(async () => assert.equal(await active(), 'n 3'));
  await page.keyboard.press('Home');
  await eventually(async () => assert.equal(await active(), 'n 0'));
  await page.keyboard.press('PageDown');
  await eventually(async () => assert.equal(await active(), 'n 4'));
  await page.keyboard.press('Enter');
  await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.closest('aside')?.id), 'detail'));
  await reads('#detail .json', /"n": 4/);
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), 'signals'));
  assert.equal(await page.locator('#detail').count(), 0);
  await page.keyboard.press('ArrowUp');
  await reads('.foot', /^Held on the selected signal\./);
  await page.keyboard.press('End');
  await eventually(async () => assert.equal(await page.locator('#follow').count(), 0));
  assert.equal(await shown.seen('microphones'), 0);
  // Every stop can be seen to be one.
  const stops = await tabStops(page);
  assert.deepEqual(stops.filter(({ ring, inside }) => ring === 'none' || !inside), []);
});

/** A server of signals as an event stream. Who asks without its key is refused. */
async function serveSignals(t, key) {
  const streams = new Set();
  const server = http.createServer((req, res) => {
    if (req.headers.authorization !== `Bearer ${key}`) return void res.writeHead(401).end();
    if (req.url !== '/stream') return void res.writeHead(404).end();
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.flushHeaders();
    streams.add(res);
    res.on('close', () => streams.delete(res));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterwards(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/stream`,
    streams,
    say: (signal) => streams.forEach((stream) => stream.write(`data: ${JSON.stringify(signal)}\n\n`)),
  };
}

test('a source is added, refused without its key, and heard with it; the key is never shown again', async (t) => {
  const key = 'sk-basalt-0123456789';
  const emitter = await serveSignals(t, key);
  const { page, reads } = await watch(t, 'signals');
  await page.locator('#add-source').click();
  await page.getByLabel('Address').fill(emitter.url);
  await page.getByLabel('Name, if').fill('basalt');
  await page.locator('.add button[type=submit]').click();
  const source = page.locator('.source', { hasText: 'basalt' });
  await source.getByRole('button', { name: 'Connect', exact: true }).click();
  await eventually(async () => assert.equal(await source.locator('.state').innerText(), 'error'));
  assert.match(await source.locator('.wrong').innerText(), /key/i);

  await source.locator('.head').click();
  await source.getByLabel('Key of basalt').fill(key);
  await source.getByRole('button', { name: 'Save' }).click();
  await eventually(async () => assert.equal(await source.getByLabel('Key of basalt').getAttribute('placeholder'), 'A key is kept'));
  const connect = source.getByRole('button', { name: 'Connect', exact: true });
  await eventually(async () => {
    if (await connect.isVisible()) await connect.click({ timeout: 1000 }).catch(() => {}); // it goes while it connects
    assert.equal(await source.locator('.state').innerText(), 'connected');
  });
  await eventually(() => assert.equal(emitter.streams.size, 1));

  await only(page, 'basalt');
  emitter.say({ type: 'tool_call', source: 'adapter:emitter', payload: { toolName: 'Lift', agentId: 'x' } });
  await eventually(async () => assert.deepEqual(await page.locator('.signal:not([hidden]) .type').allInnerTexts(), ['tool_call']));
  await page.locator('.signal', { hasText: 'Lift' }).click();
  await reads('#detail .evidence', /^Source ?basalt ?Producer ?adapter:emitter/);
  await page.keyboard.press('Escape');

  // As many as there may be: what is drawn does not grow with them.
  for (let n = 0; n < 2500; n++) emitter.say({ type: 'text_delta', source: n % 2 ? 'one' : 'two', payload: { agentId: 'x', content: `${n} ` } });
  await eventually(async () => assert.ok(Number((await page.locator('#signals .times').allInnerTexts()).map((s) => s.slice(1)).sort((a, b) => b - a)[0]) > 100));
  assert.ok((await page.locator('.signal').count()) < 60);

  await source.getByRole('button', { name: 'Disconnect' }).click();
  await eventually(() => assert.equal(emitter.streams.size, 0));
  const everything = await page.evaluate(() => document.documentElement.outerHTML + JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }));
  assert.ok(!everything.includes(key));
  await source.getByRole('button', { name: 'Remove' }).click();
  await eventually(async () => assert.equal(await source.count(), 0));
});

test('what the agent of another source does is shown in the conversation, with its name, while nobody talks', async (t) => {
  const emitter = await serveSignals(t, 'k');
  const { page } = await watch(t, 'signals', { turns: 'agent' });
  await page.locator('#add-source').click();
  await page.getByLabel('Address').fill(emitter.url);
  await page.getByLabel('Name, if').fill('schist');
  await page.getByLabel('Key, if').fill('k');
  await page.locator('.add button[type=submit]').click();
  const source = page.locator('.source', { hasText: 'schist' });
  await source.getByRole('button', { name: 'Connect', exact: true }).click();
  await eventually(() => assert.equal(emitter.streams.size, 1), 20_000);
  await source.locator('.head').click();
  await source.getByRole('button', { name: 'Show in the conversation' }).click();
  assert.equal(await source.getByRole('button', { name: 'Shown in the conversation' }).getAttribute('aria-pressed'), 'true');
  await page.evaluate(() => void (location.hash = 'talk'));
  let n = 0;
  const read = (path) => ({ type: 'tool_call', source: 'adapter:emitter', payload: { toolName: 'Read', agentId: 'x', callId: `c${n++}`, input: { file_path: path } } });
  // A status is shown for a moment, so it is said again until it was seen.
  await eventually(async () => {
    emitter.say(read('charts/tide.md'));
    assert.deepEqual((await page.locator('#status').allTextContents()).map((s) => s.replace(/\s+/g, ' ').trim()), ['schist Reading charts/tide.md']);
  });
  const last = read('charts/reef.md');
  emitter.say(last);
  emitter.say({ type: 'tool_result', source: 'adapter:emitter', payload: { toolName: 'Read', agentId: 'x', callId: last.payload.callId, success: true, output: { content: '# The reef' } } });
  await eventually(async () => assert.match(await page.locator('#artifacts').innerText(), /The reef/));

  // Another visit of the same browser is shown it, too; one that is told not to is not.
  await page.reload();
  await eventually(async () => {
    emitter.say(read('charts/tide.md'));
    assert.equal(await page.locator('#status').count(), 1);
  });
  await page.evaluate(() => void (location.hash = 'signals'));
  await source.locator('.head').click();
  await source.getByRole('button', { name: 'Shown in the conversation' }).click();
  await source.getByRole('button', { name: 'Remove' }).click();
  await eventually(async () => assert.equal(await source.count(), 0));
  assert.equal(await page.evaluate(() => localStorage.getItem('vela.follow')), '[]');
});

/** What came out, the newest first: what it is, what it is about and its words. Whether the page listened when the run began is not told from that. */
const outcome = (page) => page.locator('#outcome li:not([data-command=started])').evaluateAll((all) => all.map((li) => [...li.children].slice(1).map((e) => e.textContent)));

test('what passes each wire and each filter is counted, and what comes out is told while run mode is on', async (t) => {
  const { page, reads } = await watch(t, 'wiring');
  await reads('#run-state', /run mode off/);
  assert.equal(await page.locator('#outcome').count(), 0);
  assert.equal(await page.locator('.capsule .n').count(), 0);
  await page.locator('.capsule').click();
  await reads('#way .lead', /^While run mode is off, signals are not counted here\.$/);
  await page.keyboard.press('Escape');
  await page.locator('#run').click();
  await reads('#run-state', /run mode on/);
  await reads('#outcome header', /0 dispatches, 0 interrupts, 0 assignments seen here/); // it listens
  for (const agentId of ['b', 'b', 'b', 'a', 'a', 'a']) await post({ type: 'tool_call', payload: { toolName: 'Grep', agentId } });
  await post({ type: 'error', correlationId: 'flint', payload: { message: 'The lamp <b>is</b> out', severity: 'error' } });
  await reads('.capsule', /^tool_call to lantern: ?sample one of 2 ?6 to 3 ?when agentId = "a" ?3 to 2$/);
  await reads('.goal[data-way="calls"]', /^lantern ?2 performed/);
  await reads('.goal[data-way="errors"]', /^bell ?1 performed/);
  await page.locator('.capsule').click();
  await reads('#way .lead', /^6 signals reached this wire, 2 passed\..* The choreography was performed 2 times\.$/);
  await reads('#way .chain', /^1 ?sample ?one of 2 ?6 to 3 ?2 ?when ?agentId = "a" ?3 to 2$/);
  await page.keyboard.press('Escape');
  const call = ['dispatch', 'lantern', 'for tool_call as __f:lantern, 0 steps {"toolName":"Grep","agentId":"a"}'];
  const said = [
    ['assignment', 'keeper.speech', '"The lamp <b>is</b> out"'],
    ['dispatch', 'bell', 'for error, 0 steps {"message":"The lamp <b>is</b> out","severity":"error"}'],
    call,
    call,
  ];
  await eventually(async () => assert.deepEqual(await outcome(page), said));
  await reads('#outcome header', /What comes out ?3 dispatches, 0 interrupts, 1 assignment seen here/);

  // Held, it can be read; what comes is counted.
  await page.locator('#outcome-pause').focus();
  await page.keyboard.press('Enter');
  await post({ type: 'error', payload: { message: 'again', severity: 'error' } });
  await reads('#outcome header', /4 dispatches, 0 interrupts, 2 assignments seen here ?Go on/);
  assert.deepEqual(await outcome(page), said);
  await page.keyboard.press('Enter');
  await eventually(async () => assert.deepEqual((await outcome(page))[0], ['assignment', 'keeper.speech', '"again"']));
  await page.locator('#as-list').click();
  await reads('#ways tbody tr:first-child', /^all ?tool_call ?sample one of 2 6 to 3 ?when agentId = "a" 3 to 2 ?lantern ?6 ?2$/);
  await page.locator('#run').click();
  await reads('#run-state', /run mode off/);
  assert.equal(await page.locator('#outcome').count(), 0);
});

test('the wiring is drawn and listed, its counters move, and a wrong file changes nothing but what is said of it', async (t) => {
  const { page, reads, text } = await watch(t, 'wiring');
  await reads('#run-state', /run mode off/);
  await page.locator('#run').click();
  await reads('#run-state', /run mode on/);
  for (let n = 0; n < 4; n++) await post({ type: 'tool_call', payload: { toolName: 'Grep', agentId: n < 2 ? 'b' : 'a' } });
  await reads('.capsule', /^tool_call to lantern: ?sample one of 2 ?4 to 2 ?when agentId = "a" ?2 to 1$/);
  await reads('.goal[data-way="errors"]', /^bell ?0 performed/);
  await page.locator('.capsule').click();
  await reads('#way .lead', /^4 signals reached this wire, 1 passed\./);
  await reads('#way .chain', /1 ?sample ?one of 2 ?4 to 2 ?2 ?when ?agentId = "a" ?2 to 1/);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#way').count(), 0);

  await page.locator('#as-list').click();
  await reads('#ways tbody tr:first-child', /^all ?tool_call ?sample one of 2 4 to 2 ?when agentId = "a" 2 to 1 ?lantern ?4 ?1$/);

  writeFileSync(wiringFile, '{"wires":[7]}');
  await reads('#wiring-banner', /wiring\.json has an error\. The wiring of \d\d:\d\d:\d\d stays in force\. ?\/wires\/0: got number, want object$/);
  await reads('#ways tbody tr:first-child', /lantern/);
  writeFileSync(wiringFile, JSON.stringify({ ...wiring, wires: [] }));
  await eventually(async () => assert.equal(await page.locator('#wiring-banner').count(), 0));
  await reads('#ways tbody tr:first-child', /^all ?tool_call ?none ?lantern ?1 ?1$/);
  writeFileSync(wiringFile, JSON.stringify(wiring));
  await page.locator('#run').click();
  await eventually(async () => assert.match(await text('#run-state'), /run mode off/));
});

test('what MIDI devices of the browser play becomes signals, when somebody asks for it', async (t) => {
  // There is no hardware: this stands in for the browser's devices.
  const fake = () => {
    const input = { id: '1', name: 'slate keys', state: 'connected', onmidimessage: null };
    window.playMidi = (...bytes) => input.onmidimessage?.({ data: Uint8Array.from(bytes) });
    navigator.requestMIDIAccess = async (options) => {
      window.midiAsked = options;
      return { inputs: new Map([['1', input]]), onstatechange: null };
    };
  };
  const { page, reads } = await watch(t, 'signals', { init: [fake] });
  assert.equal(await page.evaluate(() => window.midiAsked), undefined);
  await page.locator('#midi-start').click();
  await reads('#midi', /slate keys/);
  assert.deepEqual(await page.evaluate(() => window.midiAsked), { sysex: false });
  await only(page, 'slate');
  await page.evaluate(() => window.playMidi(0x90, 60, 100));
  await page.evaluate(() => window.playMidi(0xe0, 0, 64));
  await reads('#midi', /2 signals sent/);
  await eventually(async () => assert.deepEqual(await page.locator('.signal:not([hidden]) .summary').allInnerTexts(), ['channel 1, note 60, velocity 100', 'channel 1, value 0']));
});

test('at every width, in light and dark: text has contrast, nothing is cut off, and what is off says why', async (t) => {
  for (const viewport of [
    { width: 1280, height: 800 },
    { width: 800, height: 900 },
    { width: 390, height: 844 },
  ]) {
    const { page, reads } = await watch(t, 'signals', { viewport });
    const phone = viewport.width <= 720;
    const look = async (name) => {
      for (const colorScheme of viewport.width === 800 ? ['dark'] : ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        assert.deepEqual(
          (await sideways(page)).filter((what) => !what.startsWith('kind-')), // those scroll
          [],
          name,
        );
        assert.deepEqual(await faint(page), [], name);
        await picture(page, `${viewport.width}-${name}-${colorScheme}`);
      }
      assert.deepEqual(await unexplained(page), [], name);
      if (viewport.width === 1280 || name === 'sources') assert.deepEqual(await barriers(page), [], name);
    };
    await post({ type: 'tool_call', source: 'adapter:tap', correlationId: 'e', payload: { toolName: 'Grep', agentId: 'claude', input: { pattern: 'tide' } } });
    await post({ type: 'error', source: 'openclaw', correlationId: 'e', payload: { message: 'The server refused the key (401)', severity: 'error' } });
    await reads('#signals', /refused the key/);
    await look('signals');
    await page.locator('.signal', { hasText: 'refused the key' }).last().click();
    await reads('#detail', /Episode/);
    await look('detail');
    await page.keyboard.press('Escape');
    if (phone) {
      await page.locator('#open-sources').click();
      await reads('#sources', /On this machine/);
      await look('sources');
      await page.keyboard.press('Escape');
      await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), 'open-sources'));
      // The views are in the settings there.
      await page.getByRole('button', { name: 'Settings' }).click();
      await page.locator('#settings').getByRole('link', { name: 'Wiring' }).click();
      await eventually(async () => assert.equal(await page.locator('#settings').count(), 0));
    } else {
      await page.locator('.bar').getByRole('link', { name: 'Wiring' }).click();
    }
    await reads('#run-state', /run mode/);
    assert.equal(await page.locator('#ways').count(), phone ? 1 : 0);
    if (!phone && viewport.width < 1000) await page.locator('#as-list').click(); // the board is wider, and scrolls
    await reads('.board', /lantern/);
    await look('wiring');
  }
});
