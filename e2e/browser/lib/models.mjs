// Real agents: the built program with a vela.yaml, whose models are played by aimock, a model server of another make that speaks both vendors'
// formats. What it answers is in models/fixtures and in models.json, by what the user says.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startVela } from './vela.mjs';

const here = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const key = 'sk-browser-0123456789abcdef';

const running = new Set();
const folders = new Set();
process.on('exit', () => {
  running.forEach((child) => child.kill('SIGKILL'));
  folders.forEach((folder) => rmSync(folder, { recursive: true, force: true }));
});

/** Starts the model server, behind a gate that keeps its answers back when told to. */
export async function startModels() {
  const args = ['node_modules/@copilotkit/aimock/dist/cli.js', '--port', '0', '--validate-on-load', '--fixtures', here('models/fixtures'), '--fixtures', here('browser/models.json')];
  const child = spawn(process.execPath, args, { cwd: here(''), stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, AIMOCK_API_KEYS: key } });
  running.add(child);
  const gone = once(child, 'exit').then(() => running.delete(child));
  const address = await new Promise((resolve, reject) => {
    gone.then(() => reject(new Error('the model server ended')));
    createInterface(child.stdout).on('line', (line) => {
      const at = /listening on (\S+)/.exec(line);
      if (at) resolve(at[1]);
    });
  });
  const gate = await startGate(address);
  return {
    ...gate,
    /** What the model was asked when the user's last words had these in them: the messages of each request, oldest first. */
    async asked(said) {
      const journal = await (await fetch(`${address}/__aimock/journal`, { headers: { authorization: `Bearer ${key}` } })).json();
      return journal.map(({ body }) => body.messages ?? []).filter((messages) => String(messages.findLast((m) => m.role === 'user')?.content).includes(said));
    },
    async stop() {
      await gate.close();
      child.kill('SIGTERM');
      await gone;
    },
  };
}

/** A proxy before a model server that passes its answers on event by event, and keeps the rest of one back when told to. */
async function startGate(address) {
  const to = new URL(address);
  const kept = new Map(); // answers, and what lets each go on
  let from = () => false;
  const server = http.createServer((req, res) => {
    const onward = http.request({ hostname: to.hostname, port: to.port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      res.flushHeaders();
      res.on('close', () => kept.get(res)?.());
      relay(answer, res).catch(() => res.destroy());
    });
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** An answer is kept back from its first event for which this is true, until pass(). */
    holdFrom: (test) => (from = test),
    pass() {
      from = () => false;
      kept.forEach((go) => go());
    },
    /** How many answers are kept back and still wanted: one that the gateway has let go of is not. */
    held: () => kept.size,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  async function relay(answer, res) {
    let text = '';
    for await (const more of answer.setEncoding('utf8')) {
      const events = (text + more).split(/(?<=\n\n)/);
      text = events.at(-1).endsWith('\n\n') ? '' : events.pop();
      for (const event of events) {
        if (!res.destroyed && from(event)) await new Promise((go) => kept.set(res, go)).finally(() => kept.delete(res));
        res.write(event);
      }
    }
    res.end(text);
  }
}

/**
 * Starts the gateway with a vela.yaml, in a folder of its own. `agents` are lines of the file below `agents:`, `more` the rest of it. Its
 * `project` has the files of models/project and of browser/project.
 */
export async function startAgents(agents, args = [], more = '') {
  const folder = mkdtempSync(join(tmpdir(), 'vela-agents-'));
  folders.add(folder);
  const project = join(folder, 'project');
  for (const from of ['models/project', 'browser/project']) cpSync(here(from), project, { recursive: true });
  writeFileSync(join(folder, 'vela.yaml'), `agents:\n${agents.map((line) => `  ${line}\n`).join('')}${more}`);
  const vela = await startVela(['--config', join(folder, 'vela.yaml'), ...args], '127.0.0.1:0', { BROWSER_MODEL_KEY: key });
  return {
    ...vela,
    get log() {
      return vela.log;
    },
    project,
    /** A file of the project, as it is now. */
    file: (name) => readFileSync(join(project, name), 'utf8'),
    async stop() {
      await vela.stop();
      rmSync(folder, { recursive: true, force: true });
      folders.delete(folder);
    },
  };
}

/** A line of vela.yaml: an agent whose model the server plays. */
export function modelAgent(name, kind, { url }, more = '') {
  return `${name}: {kind: ${kind}, url: "${url}${kind === 'openai' ? '/v1' : ''}", model: m, key_env: BROWSER_MODEL_KEY${more && `, ${more}`}}`;
}
