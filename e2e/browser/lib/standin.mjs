// A stand-in for the gateway's half of an agent-backed turn: it speaks version 2 from what a test tells it, event by event. The page, and all that
// is not a session, comes from the real gateway. Real agents are tested elsewhere.
import { once } from 'node:events';
import http from 'node:http';
import { WebSocketServer } from 'ws';
import { eventually, openPage } from './browser.mjs';
import { afterwards } from './afterwards.mjs';
import { mute, Shown } from './page.mjs';

/** Two that can be chosen, and one that cannot. */
export const someAgents = {
  default: 'claude',
  agents: [
    { name: 'claude', label: 'Claude in the project', kind: 'anthropic', available: true, tools: ['read_file', 'edit_file', 'grep', 'bash', 'web_search'] },
    { name: 'ollama', label: 'Ollama (llama3.2)', kind: 'openai', available: true, tools: [] },
    { name: 'openclaw', label: 'OpenClaw', kind: 'openclaw', available: false, why: 'Nothing answers on port 18789. Start it, then try again', tools: [] },
  ],
};

/** Serves the page of the gateway at `host`; its sessions are the test's. */
export async function standIn(host, { agents = someAgents } = {}) {
  const [hostname, port] = host.split(':');
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, handleProtocols: () => 'vela.v2' });
  let socket = null;
  const gateway = {
    url: '',
    agents,
    agent: 'claude',
    turnDetection: 'none',
    /** What the page sent, read. */
    received: [],
    /** The events of the session, in order. */
    events: [],
    /** What the page is refused, by the name of the agent. */
    refuses: new Set(),
    say,
    of: (type) => gateway.received.filter((m) => m.type === type).map((m) => m.payload),
    cut: () => socket.terminate(),
    stop,
  };
  const server = http.createServer((req, res) => {
    if (req.url === '/api/agents') {
      if (!gateway.agents) return res.writeHead(503).end();
      res.writeHead(200, { 'content-type': 'application/json' });
      return res.end(JSON.stringify(gateway.agents));
    }
    const onward = http.request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  });
  server.on('upgrade', (req, raw, head) => {
    raw.on('error', () => {});
    sockets.handleUpgrade(req, raw, head, (opened) => {
      socket = opened;
      opened.on('error', () => {});
      opened.on('message', (data, binary) => {
        if (binary) gateway.received.push({ type: 'sound', payload: {} });
        else take(JSON.parse(String(data)));
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  gateway.url = `http://127.0.0.1:${server.address().port}`;
  return gateway;

  function take(message) {
    gateway.received.push(message);
    const { type, payload, id } = message;
    if (type === 'session.start') {
      if (gateway.refuses.has(payload.agent)) {
        return tell('error', { code: 'unsupported', message: 'Not this one.', retryable: false, ref: id });
      }
      gateway.agent = payload.agent ?? gateway.agent;
      gateway.turnDetection = payload.turnDetection ?? gateway.turnDetection;
      ready();
      if (gateway.events.length === 0) say('session.state', { value: 'idle' });
      else tell('session.state', { value: 'idle' }); // it is taken between turns alone
    } else if (type === 'session.resume') {
      ready({ resumed: true, recovered: true });
      for (const event of gateway.events.slice(payload.after)) socket.send(event);
    } else if (type === 'history.get') {
      tell('history', { items: [] });
    }
  }

  function ready(change = {}) {
    tell('session.ready', {
      sessionId: 'stand-in',
      protocol: 2,
      resumed: false,
      recovered: false,
      resumeToken: 'a token',
      resumeWindowMs: 120_000,
      lastSeq: gateway.events.length,
      turns: 'agent',
      agent: gateway.agent,
      audio: { input: { encoding: 'pcm16', rate: 16000, framing: 'binary' } },
      turnDetection: gateway.turnDetection,
      interrupt: true,
      approvals: true,
      room: '',
      features: ['text', 'audio_in', 'resume', 'history', 'vad'],
      ...change,
    });
  }

  /** To this connection alone. */
  function tell(type, payload) {
    socket.send(JSON.stringify({ type, payload }));
  }

  /** An event of the session. */
  function say(type, payload = {}) {
    const event = JSON.stringify({ type, payload, seq: gateway.events.length + 1, ts: Date.now() });
    gateway.events.push(event);
    if (socket?.readyState === 1) socket.send(event);
  }

  async function stop() {
    socket?.terminate();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
}

/** A page before the stand-in, ready for a turn. */
export async function meet(t, browser, vela, { agents, ...options } = {}) {
  const gateway = await standIn(vela.host, agents === undefined ? {} : { agents });
  const watch = await openPage(browser, `${gateway.url}/?turns=agent`, { ...options, init: [mute] });
  afterwards(t, () => gateway.stop());
  afterwards(t, () => watch.close());
  afterwards(t, () => watch.check());
  const shown = new Shown(watch.page);
  await shown.ready();
  return { gateway, page: watch.page, shown };
}

/** Begins a turn as far as the agent's half of it. */
export async function begin({ gateway, page, shown }, words = 'Why does a cancelled turn sometimes stay in thinking?', n = 1) {
  if (!(await page.locator('#type').isVisible())) await page.getByRole('button', { name: 'Type', exact: true }).click();
  await page.locator('#type').fill(words);
  await page.locator('#type').press('Enter');
  await eventually(() => {
    if (gateway.of('input_text.submit').length < n) throw new Error('the page sent nothing');
  });
  gateway.say('transcript.final', { text: words, itemId: `i${n}` });
  gateway.say('session.state', { value: 'thinking' });
  gateway.say('response.created', { responseId: `r${n}`, turnId: `t${n}` });
  await eventually(async () => {
    if ((await shown.session()) !== 'thinking') throw new Error('the page does not think');
  });
}

/** Ends it. */
export function finish(gateway, n = 1) {
  gateway.say('response.completed', { responseId: `r${n}`, usage: { promptTokens: 1204, completionTokens: 88 } });
  gateway.say('turn.metrics', { turnId: `t${n}`, firstTokenMs: 604, gatewayMs: 4, totalMs: 2900 });
  gateway.say('session.state', { value: 'idle' });
}

/** A use of a tool, from its call to its result. */
export function use(gateway, callId, name, input, output = { content: 'done' }, success = true) {
  gateway.say('tool.call', { callId, name, input });
  gateway.say('tool.result', { callId, name, success, output });
}

export const diff = [
  '--- a/session/fsm.go',
  '+++ b/session/fsm.go',
  '@@ -41,9 +41,12 @@ commit',
  ' \tif s.current != nil {',
  ' \t\treturn s.refuse(ctx, errTurnInFlight)',
  ' \t}',
  '-\tif err := s.machine.Event(ctx, evCommit); err != nil {',
  '-\t\treturn err',
  '+\t// The step must end even when the turn is already',
  '+\t// cancelled, or the machine stays between states.',
  '+\tstep := context.WithoutCancel(ctx)',
  '+\tif err := s.machine.Event(step, evCommit); err != nil {',
  '+\t\treturn s.refuse(step, "the commit came too late")',
  ' \t}',
  ' \ts.current = s.start(ctx, 250)',
  ' \treturn nil',
  ' }',
  '',
].join('\n');

/** One of each kind. */
export const artifacts = {
  error: { type: 'artifact', artifact_type: 'error', title: 'bash', message: 'exit status 1\n--- FAIL: TestCancel (0.00s)' },
  file: { type: 'artifact', artifact_type: 'file', title: 'NOTES', path: 'docs/NOTES', content: 'one\ntwo\n' },
  markdown: {
    type: 'artifact',
    artifact_type: 'markdown',
    title: 'README.md',
    path: 'README.md',
    content:
      '# Session\n\nA *state machine* owned by **one** goroutine, see [the notes](https://example.com/notes) and `fsm.go`.\n\n- idle\n- listening\n  - partials\n- thinking\n\n1. first\n2. second\n\n> Nothing that was said is lost.\n\n```go\nfunc main() { // here\n}\n```\n',
  },
  search_results: {
    type: 'artifact',
    artifact_type: 'search_results',
    title: 'evCancel',
    query: 'evCancel',
    results: [
      { file: 'session/fsm.go', line: 41, content: '\tif err := s.machine.Event(ctx, evCancel); err != nil {' },
      { file: 'session/fsm.go', line: 88, content: '\treturn s.machine.Event(ctx, evCancel)' },
      { file: 'session/cancel_test.go', line: 12, content: 'func TestCancel(t *testing.T) {' },
    ],
  },
  code: {
    type: 'artifact',
    artifact_type: 'code',
    title: 'cancel_test.go',
    file: 'session/cancel_test.go',
    language: 'go',
    startLine: 12,
    content: 'func TestCancel(t *testing.T) {\n\t// Cancel first, then commit.\n\tif got := run("cancel", 250); got != 0 {\n\t\tt.Errorf("got %d", got)\n\t}\n}\n',
  },
  diff: { type: 'artifact', artifact_type: 'diff', title: 'Edit: fsm.go', file: 'session/fsm.go', diff },
};
