// How the page looks at every size, and how it is used without a pointer or without eyes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, startBrowser } from './lib/browser.mjs';
import { barriers, faint, picture, sideways, tabStops, unexplained } from './lib/looks.mjs';
import { brokenSocket, event, mocked, visit } from './lib/page.mjs';
import { artifacts, begin, finish, meet, use } from './lib/standin.mjs';
import { startVela } from './lib/vela.mjs';

let browser, vela;
before(async () => ([browser, vela] = await Promise.all([startBrowser(), startVela(['--pace', '10ms'])])));
after(() => Promise.all([browser?.close(), vela?.stop()]));

const sizes = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
  { width: 320, height: 640 },
];

/** The views that the bar has; on phones the settings have them. */
const views = ({ width }) => (width <= 720 ? [] : ['Talk', 'Signals', 'Wiring']);

const long = `${'Tell me everything that happened in the harbour since the boats came in this morning, '.repeat(3)}please`;

const is = (type, value) => (message) => message.includes(`"${type}"`) && message.includes(`"${value}"`);

/** Goes through a turn and stops in every phase, as long as `look` takes. */
async function throughATurn({ page, shown, proxy }, look) {
  await look('idle');
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.innerText(), mocked.partial));
  await look('listening');
  proxy.inject(event('transcript.partial', { text: long }));
  await eventually(async () => assert.equal(await shown.partial.innerText(), long));
  await look('listening-long');
  proxy.holdFrom = is('session.state', 'speaking');
  await shown.release();
  await eventually(async () => assert.equal(await shown.session(), 'thinking'));
  await page.mouse.move(0, 0);
  await look('thinking');
  proxy.pass(is('response.completed', 'payload'));
  await eventually(async () => assert.equal((await shown.conversation())[0]?.[1]?.[1], mocked.answer));
  await look('speaking');
  proxy.pass();
  await shown.idleAgain();
  await look('answered');
}

/** Goes through an agent's turn, with a tool and a question, and stops in every phase. */
async function throughAnAgentsTurn(met, look) {
  const { page, gateway, shown } = met;
  const status = (action, detail) => gateway.say('status', { type: 'status', action, detail });
  const reads = (text) => eventually(async () => assert.equal((await page.locator('#status').innerText()).replace(/\s+/g, ' '), text));
  await look('idle');
  await begin(met, long);
  await look('thinking');
  status('thinking', 'Looking into it');
  await reads('Looking into it');
  await look('pondering');
  status('searching_files', 'a pattern that is much longer than anybody would have written it by hand, and goes on');
  await reads('Searching files a pattern that is much longer than anybody would have written it by hand, and goes on');
  use(gateway, 'c1', 'grep', { pattern: 'tide' });
  await look('searching');
  gateway.say('tool.call', { callId: 'c2', name: 'edit_file', input: { path: 'tides.py' } });
  gateway.say('approval.request', { approvalId: 'a1', callId: 'c2', name: 'edit_file', summary: 'Edit tides.py: 1 line for 1', risk: 'high', expiresMs: 60_000 });
  await eventually(async () => assert.equal(await page.locator('.ask').count(), 1));
  await look('asked');
  gateway.say('tool.result', { callId: 'c2', name: 'edit_file', success: true, output: { content: 'done' } });
  gateway.say('session.state', { value: 'speaking' });
  gateway.say('response.text.delta', { text: long });
  await eventually(async () => assert.equal(await shown.session(), 'speaking'));
  await look('speaking');
  finish(gateway);
  await shown.idleAgain();
  await look('answered');
}

for (const viewport of sizes) {
  const size = `${viewport.width}x${viewport.height}`;
  const phone = viewport.width <= 720;

  for (const turns of ['deterministic', 'agent']) {
    test(`${size}, ${turns} turns: nothing scrolls sideways and all text has contrast, in light and dark`, async (t) => {
      const { page, shown } = await visit(t, browser, vela, { turns, viewport });
      const look = async () => {
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await sideways(page), []);
          assert.deepEqual(await faint(page), []);
          assert.deepEqual(await unexplained(page), []);
        }
      };
      await look();
      await picture(page, `${size}-${turns}-empty`);
      await page.getByRole('button', { name: 'Settings' }).click();
      await page.locator('#settings').waitFor();
      await look();
      await picture(page, `${size}-${turns}-settings`);
      await page.keyboard.press('Escape');
      assert.equal(await shown.connection(), 'connected');
    });
  }

  for (const turns of ['deterministic', 'agent']) {
    test(`${size}, ${turns} turns: the helm and its control stay where they are in every phase; all text has contrast, all that is off says why`, async (t) => {
      const visited = turns === 'agent' ? await meet(t, browser, vela, { viewport }) : await visit(t, browser, vela, { viewport });
      const { page } = visited;
      const boxes = {};
      const through = turns === 'agent' ? throughAnAgentsTurn : throughATurn;
      await through(visited, async (phase) => {
        boxes[phase] = await page.evaluate(() => {
          const box = (selector) => {
            const { left, top, width, height, bottom } = document.querySelector(selector).getBoundingClientRect();
            return { left, top, width, height, bottom };
          };
          return { helm: box('.helm'), ring: box('.ring'), mocked: box('#mocked'), stop: box('#stop') };
        });
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await sideways(page), [], `${phase}, ${colorScheme}`);
          assert.deepEqual(await faint(page), [], `${phase}, ${colorScheme}`);
          if (turns === 'deterministic') await picture(page, `${size}-${phase}-${colorScheme}`);
        }
        assert.deepEqual(await unexplained(page), [], phase);
      });
      for (const [phase, { helm, ring, mocked, stop }] of Object.entries(boxes)) {
        assert.deepEqual(ring, boxes.idle.ring, `the control moved while ${phase}`);
        assert.equal(helm.bottom, viewport.height, `the helm left the bottom edge while ${phase}`);
        assert.equal(mocked.top, boxes.idle.mocked.top, `the mocked-turn button moved while ${phase}`);
        // In agent turns a phone has a button to type in its place, until there is something to stop.
        if (stop.height > 0) assert.equal(stop.top, boxes.thinking.stop.top, `the stop button moved while ${phase}`);
        else assert.ok(phone && turns === 'agent' && ['idle', 'answered'].includes(phase), `there is no stop button while ${phase}`);
        if (phone) assert.ok(helm.height >= boxes.idle.helm.height, `the helm shrank while ${phase}`);
        else assert.deepEqual(helm, boxes.idle.helm, `the helm changed while ${phase}`);
      }
    });
  }
}

test('a banner moves neither the helm nor its control', async (t) => {
  for (const viewport of sizes) {
    const { page, shown, proxy } = await visit(t, browser, vela, { viewport });
    const place = () => page.evaluate(() => ['.helm', '.ring'].map((s) => document.querySelector(s).getBoundingClientRect().toJSON()));
    const before = await place();
    proxy.inject(event('error', { code: 'internal', message: 'x' }));
    await eventually(async () => assert.equal(await shown.banner.isVisible(), true));
    assert.deepEqual(await place(), before);
    assert.deepEqual(await sideways(page), []);
    await picture(page, `${viewport.width}x${viewport.height}-banner`);
    proxy.inject('nonsense');
    await eventually(async () => assert.equal(await shown.connection(), 'error'));
    assert.deepEqual((await place())[1], before[1]);
    assert.deepEqual(await sideways(page), []);
    assert.deepEqual(await faint(page), []);
    await picture(page, `${viewport.width}x${viewport.height}-error`);
  }
});

for (const [viewport, colorScheme] of [
  [sizes[0], 'light'],
  [sizes[2], 'dark'],
]) {
  test(`axe finds no serious barrier in any phase at ${viewport.width} px, ${colorScheme}`, async (t) => {
    const visited = await visit(t, browser, vela, { viewport, colorScheme, reducedMotion: 'reduce' });
    const { page, shown, proxy } = visited;
    await throughATurn(visited, async (phase) => assert.deepEqual(await barriers(page), [], phase));
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.locator('#settings').waitFor();
    assert.deepEqual(await barriers(page), [], 'settings');
    await page.keyboard.press('Escape');
    proxy.inject('nonsense');
    await eventually(async () => assert.equal(await shown.connection(), 'error'));
    assert.deepEqual(await barriers(page), [], 'error');
  });
}

test('Tab reaches everything there is to use, in order, with a visible ring', async (t) => {
  for (const viewport of [sizes[0], sizes[2]]) {
    const { page, shown, proxy } = await visit(t, browser, vela, { viewport });
    const focus = await page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement('i'));
      probe.style.color = 'var(--focus)';
      const { color } = getComputedStyle(probe);
      probe.remove();
      return color;
    });
    const ringed = (stops) => {
      for (const { name, ring, inside } of stops) {
        assert.equal(ring, focus, `no ring round ${name}`);
        assert.ok(inside, `${name} is focused out of sight`);
      }
      return stops.map(({ name }) => name);
    };
    assert.deepEqual(ringed(await tabStops(page)), ['Skip to the talk control', ...views(viewport), 'Settings', 'conversation', 'talk', 'mocked']);
    // While a turn runs there is only the cancel to use.
    proxy.holdFrom = is('session.state', 'speaking');
    await shown.mocked.click();
    await eventually(async () => assert.equal(await shown.session(), 'thinking'));
    await page.evaluate(() => document.activeElement?.blur());
    const running = ringed(await tabStops(page));
    assert.deepEqual([...running].sort(), ['Settings', 'Skip to the talk control', 'conversation', 'stop', ...views(viewport)].sort());
    proxy.pass();
    await shown.idleAgain();
    proxy.inject('nonsense');
    await eventually(async () => assert.equal(await shown.connection(), 'error'));
    await page.evaluate(() => document.activeElement?.blur());
    const broken = ringed(await tabStops(page));
    assert.ok(broken.includes('Connect again'), `${broken}`);
  }
});

test('Tab in agent turns reaches the agent, the artifacts, and a question with all that answers it; nothing that is off', async (t) => {
  for (const viewport of [sizes[0], sizes[2]]) {
    const phone = viewport.width <= 720;
    const met = await meet(t, browser, vela, { viewport });
    const { page, gateway, shown } = met;
    await page.locator('#agent-choice').waitFor({ state: 'attached' });
    const stops = async () => {
      const all = await tabStops(page);
      for (const { name, ring, inside } of all) {
        assert.notEqual(ring, 'none', `no ring round ${name}`);
        assert.ok(inside, `${name} is focused out of sight`);
      }
      const names = all.map(({ name }) => name.replace(/, [\d,]+ ms|^[\d.]+ s /, ''));
      const first = names.indexOf('Skip to the talk control');
      return [...names.slice(first), ...names.slice(0, first)];
    };
    const top = (...tools) => ['Skip to the talk control', ...views(viewport), ...(phone ? [] : tools), 'Settings', 'conversation'];
    assert.deepEqual(await stops(), [...top('agent-choice'), 'talk', ...(phone ? ['mocked', 'Type'] : ['hands-free', 'type', 'mocked'])]);
    await begin(met);
    assert.deepEqual(await stops(), [...top('save-transcript'), 'talk', ...(phone ? ['stop'] : ['hands-free', 'type', 'stop'])]);
    gateway.say('tool.call', { callId: 'c1', name: 'bash', input: { command: 'make' } });
    gateway.say('approval.request', { approvalId: 'a1', callId: 'c1', name: 'bash', summary: 'make', risk: 'high', expiresMs: 60_000 });
    await eventually(async () => assert.ok(await page.evaluate(() => document.activeElement.matches('.ask')))); // it takes the focus once
    assert.deepEqual(await stops(), [
      ...top('save-transcript'),
      'bashmakerunning, waits for you',
      'For the rest of this conversation',
      'Deny Alt N',
      'Allow Alt Y',
      'talk',
      ...(phone ? ['stop'] : ['hands-free', 'type', 'stop']),
    ]);
    gateway.say('tool.result', { callId: 'c1', name: 'bash', success: true });
    gateway.say('artifact', artifacts.diff);
    gateway.say('response.text.delta', { text: 'Done.' });
    finish(gateway);
    await shown.idleAgain();
    assert.deepEqual(await stops(), [
      ...top('new-conversation', 'save-transcript', 'open-artifacts', 'agent-choice'),
      'bashmakedone',
      'from sending to the first word',
      'talk',
      ...(phone ? ['open-artifacts-pad', 'mocked', 'Type'] : ['hands-free', 'type', 'mocked']),
      ...(phone ? [] : ['Close artifacts', 'artifact-2', 'Copy', 'artifact-panel']),
    ]);
  }
});

test('in the bar nothing stands on anything else, however wide it is', async (t) => {
  const { page } = await meet(t, browser, vela, { viewport: { width: 1440, height: 800 } });
  for (const width of [1440, 1280, 1101, 900, 800, 721]) {
    await page.setViewportSize({ width, height: 800 });
    const over = await page.evaluate(() => {
      const parts = [...document.querySelectorAll('.bar > *, .bar .pick, .bar .tools > .button, .bar .fact')].map((e) => ({ e, ...e.getBoundingClientRect().toJSON() })).filter((p) => p.width > 1);
      const apart = (a, b) => a.e.contains(b.e) || b.e.contains(a.e) || a.right <= b.left + 0.5 || b.right <= a.left + 0.5;
      return parts.flatMap((a, i) => parts.slice(i + 1).flatMap((b) => (apart(a, b) ? [] : [`${a.e.className} and ${b.e.className}`])));
    });
    assert.deepEqual(over, [], `${width} px`);
    assert.deepEqual(await sideways(page), [], `${width} px`);
  }
});

test('the skip link leads to the talk control', async (t) => {
  const { page } = await visit(t, browser, vela);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'talk');
});

test('the settings keep the focus inside, and give it back on Escape', async (t) => {
  const { page } = await visit(t, browser, vela);
  const opener = page.getByRole('button', { name: 'Settings' });
  await opener.focus();
  await page.keyboard.press('Enter');
  await eventually(async () => assert.equal(await page.getByRole('dialog', { name: 'Settings' }).isVisible(), true));
  const stops = (await tabStops(page)).map(({ name }) => name);
  for (const stop of stops) {
    const inside = await page.evaluate(
      (name) => [...document.querySelectorAll('#settings :is(button, select, a)')].some((e) => [e.id, e.ariaLabel, e.textContent.trim()].includes(name)),
      stop,
    );
    assert.ok(inside, `${stop} is outside of the settings`);
  }
  assert.ok(stops.includes('end-session') && stops.includes('tap'), `${stops}`);
  await page.locator('#tap').focus();
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await page.locator('#settings').count(), 0));
  await eventually(async () => assert.equal(await opener.evaluate((e) => e === document.activeElement), true));
});

test('Escape closes the settings also when nothing in them has the focus', async (t) => {
  const { page } = await visit(t, browser, vela);
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('heading', { name: 'Appearance' }).click();
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await page.locator('#settings').count(), 0));
});

test('every control has its role and name', async (t) => {
  const { page } = await visit(t, browser, vela);
  const tree = await page.locator('body').ariaSnapshot();
  for (const line of [
    'link "Skip to the talk control"',
    'banner',
    'button "Settings"',
    'main',
    'heading "Talk" [level=1]',
    'region "Conversation"',
    'region "Talk control"',
    'button "Control shell, hold to send placeholder audio"',
    'button "Run a mocked turn"',
    'button "Cancel" [disabled]',
  ]) {
    assert.ok(tree.includes(`- ${line}`), `${line} is missing from\n${tree}`);
  }
});

test('every control of agent turns has its role and name', async (t) => {
  const met = await meet(t, browser, vela);
  const { page, gateway } = met;
  const has = async (...lines) => {
    const tree = await page.locator('body').ariaSnapshot();
    for (const line of lines) assert.ok(tree.includes(`- ${line}`), `${line} is missing from\n${tree}`);
  };
  await page.locator('#agent-choice').waitFor({ state: 'attached' });
  await has(
    'link "Skip to the talk control"',
    'button "New conversation" [disabled]',
    'button "Save transcript" [disabled]',
    `'button "Agent: Claude in the project"'`,
    'button "Hold to talk"',
    'textbox "Type instead"',
    'button "Run a mocked turn"',
    'button "Stop" [disabled]',
  );
  await begin(met, 'look');
  gateway.say('thinking.delta', { text: 'hm' });
  use(gateway, 'c1', 'grep', { pattern: 'x' });
  gateway.say('tool.call', { callId: 'c2', name: 'bash', input: { command: 'make' } });
  gateway.say('artifact', artifacts.diff);
  gateway.say('approval.request', { approvalId: 'a1', callId: 'c2', name: 'bash', summary: 'make', risk: 'high', expiresMs: 60_000 });
  await eventually(async () => assert.equal(await page.locator('.ask').count(), 1));
  await has(
    'list "What was done"',
    'group "May it use bash?"',
    'checkbox "For the rest of this conversation"',
    'button "Deny"',
    'button "Allow"',
    'button "Stop"',
    'complementary "Artifacts"',
    'tablist "Artifacts, newest first"',
    `'tabpanel "Edit: fsm.go"'`,
    'button "Copy"',
    'button "Close artifacts"',
  );
});

test('a screen reader is told finals, phases and whole answers, and no partials or deltas', async (t) => {
  const { page, shown } = await visit(t, browser, vela);
  assert.equal(await page.locator('#announcements').getAttribute('aria-live'), 'polite');
  assert.deepEqual(await shown.seen('announced'), ['Connecting', 'Connected']);
  await shown.press();
  await eventually(async () => assert.equal(await shown.partial.isVisible(), true));
  assert.deepEqual((await shown.seen('announced')).slice(2), []);
  await shown.release();
  await eventually(async () => assert.equal((await shown.conversation()).length, 1));
  await shown.idleAgain();
  await eventually(async () =>
    assert.deepEqual((await shown.seen('announced')).slice(2), [
      `You said: ${mocked.final}`,
      'Thinking',
      'Speaking',
      `Mocked assistant: ${mocked.answer}`,
      'Idle',
    ]),
  );
  // What changes all the time is in no live region.
  for (const selector of ['#partial', '[data-who="agent"]', '#session']) {
    assert.equal(await page.locator(selector).first().evaluate((e) => e.closest('[aria-live], [role=status], [role=alert], [role=log]')), null);
  }
});

test('what is lost or wrong is an alert', async (t) => {
  const { page, shown, proxy } = await visit(t, browser, vela, { expected: brokenSocket });
  proxy.inject('nonsense');
  await eventually(async () => assert.match(await page.getByRole('alert').innerText(), /^Connection error\./));
  await shown.bannerAction().click();
  await shown.ready();
  proxy.handshake = 'refuse';
  proxy.close(1011);
  await eventually(async () => assert.match(await page.getByRole('alert').innerText(), /^Connection lost\./));
});

test('a control that loses the focus to a turn has it back afterwards', async (t) => {
  const { page, shown } = await visit(t, browser, vela);
  await shown.mocked.focus();
  await page.keyboard.press('Enter');
  await eventually(async () => assert.equal((await shown.conversation())[0]?.[1]?.[1], mocked.answer));
  await shown.idleAgain();
  await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.id), 'mocked'));
});

test('reduced motion: nothing moves', async (t) => {
  for (const [reducedMotion, moving] of [
    ['reduce', false],
    ['no-preference', true],
  ]) {
    const { page, shown, proxy } = await visit(t, browser, vela, { reducedMotion });
    proxy.holdFrom = is('session.state', 'speaking');
    await shown.mocked.click();
    await eventually(async () => assert.equal(await shown.session(), 'thinking'));
    assert.equal(await page.evaluate(() => document.getAnimations().length > 0), moving, reducedMotion);
  }
});

test('a theme that was chosen is kept', async (t) => {
  const { page } = await visit(t, browser, vela, { colorScheme: 'light' });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('radio', { name: 'Dark' }).click();
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await ground(), dark);
});
