// What the page's view of signals costs in a real Chromium at 1,000 signals a second, beside the same page with nothing to show. Both are measured in
// one run, from the browser's own trace: every task of the page's main thread, and how many of them took more than 50 ms.
import { once } from 'node:events';
import http from 'node:http';
import { startBrowser } from '../browser/lib/browser.mjs';
import { startVela } from '../browser/lib/vela.mjs';

const seconds = Number(process.argv[2] ?? 8);
const perSecond = 1000;
const emitters = 2; // a source may send 1,000 a second, so that one alone would be at its limit
const every = 20; // ms

/** A server of signals as an event stream: `perSecond / emitters` of them a second to whoever listens, of the kinds that agents send. */
async function startEmitter(name) {
  const streams = new Set();
  const server = http.createServer((req, res) => {
    if (req.url !== '/stream') return void res.writeHead(404).end();
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.flushHeaders();
    streams.add(res);
    res.on('close', () => streams.delete(res));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  let sent = 0;
  let began = 0;
  const next = () => {
    const n = sent++;
    const agentId = name;
    const correlationId = `${name}-${Math.floor(n / 60)}`;
    const of = {
      0: ['tool_call', { toolName: 'Grep', agentId, callId: `c${n}`, input: { pattern: `tide ${n}` } }],
      1: ['tool_result', { toolName: 'Grep', agentId, callId: `c${n}`, success: true, output: { response: { lines: n % 40 } } }],
      2: ['token_usage', { agentId, promptTokens: n, completionTokens: 88 }],
      3: ['thinking', { agentId, content: 'The context that was passed is already done. ' }],
    };
    const [type, payload] = of[n % 10] ?? ['text_delta', { agentId, content: `word${n} ` }];
    return `data: ${JSON.stringify({ type, source: `adapter:${name}`, correlationId, payload })}\n\n`;
  };
  const timer = setInterval(() => {
    if (began === 0) return;
    const due = Math.floor(((performance.now() - began) * perSecond) / emitters / 1000) - sent;
    if (due <= 0) return;
    const text = Array.from({ length: due }, next).join('');
    for (const stream of streams) stream.write(text);
  }, every);
  return {
    url: `http://127.0.0.1:${server.address().port}/stream`,
    listeners: () => streams.size,
    begin: () => (began = performance.now()),
    end: () => (began = 0),
    stop() {
      clearInterval(timer);
      server.closeAllConnections();
      server.close();
    },
  };
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function ask(vela, method, path, body) {
  const answer = await fetch(vela.url + path, { method, headers: { 'content-type': 'application/json' }, ...(body && { body: JSON.stringify(body) }) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** The tasks of the page's main thread while `seconds` pass, and what its script took. */
async function measure(browser, page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const metric = async (name) => (await cdp.send('Performance.getMetrics')).metrics.find((m) => m.name === name).value;
  await cdp.send('HeapProfiler.collectGarbage');
  const before = { script: await metric('ScriptDuration'), heap: await metric('JSHeapUsedSize') };
  const frames = page.evaluate((ms) => new Promise((done) => {
    let count = 0;
    const end = performance.now() + ms;
    const frame = () => (performance.now() < end ? (count++, requestAnimationFrame(frame)) : done(count));
    requestAnimationFrame(frame);
  }), seconds * 1000);
  await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-lighthouse', '__metadata'] });
  await sleep(seconds * 1000);
  const trace = JSON.parse((await browser.stopTracing()).toString());
  const events = trace.traceEvents ?? trace;
  const count = await frames;
  const script = (await metric('ScriptDuration')) - before.script;
  await cdp.send('HeapProfiler.collectGarbage');
  const grown = (await metric('JSHeapUsedSize')) - before.heap;
  const mains = new Set(events.filter((e) => e.name === 'thread_name' && e.args?.name === 'CrRendererMain').map((e) => `${e.pid}/${e.tid}`));
  const all = events.filter((e) => e.ph === 'X' && mains.has(`${e.pid}/${e.tid}`) && /RunTask$/.test(e.name));
  const name = all.some((e) => e.name === 'RunTask') ? 'RunTask' : all[0]?.name;
  const tasks = all.filter((e) => e.name === name).map((e) => ({ ms: (e.dur ?? 0) / 1000, own: (e.tdur ?? e.dur ?? 0) / 1000 }));
  return {
    tasks: tasks.length,
    long: tasks.filter(({ ms }) => ms > 50).length,
    // Without what other programs took of the processor meanwhile.
    own: tasks.filter(({ own }) => own > 50).length,
    longest: tasks.reduce((a, { own }) => Math.max(a, own), 0),
    perFrame: (script * 1000) / Math.max(1, count),
    frames: count / seconds,
    busy: tasks.reduce((sum, { own }) => sum + own, 0) / 1000 / seconds,
    grown,
  };
}

const percent = (part, whole) => `${((100 * part) / Math.max(1, whole)).toFixed(2)} %`;

function print(what, m, more = '') {
  console.log(
    `  ${what.padEnd(22)} ${String(m.long).padStart(3)} of ${String(m.tasks).padStart(6)} tasks over 50 ms (${percent(m.long, m.tasks)}), ${m.own} by their own time, of which the longest took ${m.longest.toFixed(0)} ms; ` +
      `script ${m.perFrame.toFixed(1)} ms a frame, ${m.frames.toFixed(0)} frames/s, ${percent(m.busy, 1)} of a core${more}`,
  );
}

const vela = await startVela();
const browser = await startBrowser();
const all = await Promise.all(Array.from({ length: emitters }, (_, i) => startEmitter(`emitter${i + 1}`)));
try {
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  await page.goto(`${vela.url}/#signals`);
  await page.locator('#signals').waitFor();
  console.log(`the page's view of signals in Chromium, ${seconds} s each (the floor is the same page with nothing to show)`);
  await sleep(1000);
  print('nothing to show', await measure(browser, page));

  for (const { url } of all) {
    const { id } = await ask(vela, 'POST', '/api/sources', { url });
    await ask(vela, 'POST', `/api/sources/${encodeURIComponent(id)}/connect`);
  }
  while (all.some((emitter) => emitter.listeners() === 0)) await sleep(50);
  all.forEach((emitter) => emitter.begin());
  // So that as many are kept as may be, and the oldest go.
  const kept = () => page.locator('#kept').innerText();
  while (!(await kept()).includes('10,000 kept')) await sleep(100);
  const taken = () => page.evaluate(() => Number(document.querySelector('#signals-per-second').textContent.replace(/[^\d]/g, '')));
  const flowing = await measure(browser, page);
  print('1,000 signals/s', flowing, `, heap ${(flowing.grown / 2 ** 20).toFixed(1)} MiB more, ${await taken()} signals/s shown`);
  await page.locator('#signals').press('ArrowUp');
  print('and one is selected', await measure(browser, page));
} finally {
  all.forEach((emitter) => emitter.stop());
  await browser.close();
  await vela.stop();
}
