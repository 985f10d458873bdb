// What an agent does in a turn of version 2: who it is, its status, its tools, its questions, its artifacts, and what it took.
import type { ArtifactPayload, StatusAction } from '@vela/protocol';
import { describe, expect, test } from 'vitest';
import { fetchAgents, readAgents, type Agents } from '../client/agents';
import { decode2 } from '../client/decode2';
import { FakeStore } from '../client/fakes';
import { keepAnswers, takeAnswers, timeLeft } from './approvals';
import { readBody, titleOf, wholeText } from './artifacts';
import { agentChoice } from './choice';
import { bench, type Bench, type BenchOptions } from './fakes';
import { helm } from './helm';
import { oneLine, plain } from './plain';
import { shortCommand, shortPath, statusOf } from './status';
import { detailOf, evidence } from './steps';
import { choose, newer, onArtifact, shownOf, unwatched } from './viewer';

const talk = (b: Bench) => b.app.model.value.talk;
const last = (b: Bench) => talk(b).turns.at(-1)!;
const view = (b: Bench) => helm(b.app.model.value);
const sent = (b: Bench, type: string) => b.sockets.flatMap((s) => s.sent).filter((m) => m.type === type).map((m) => m.payload);
const told = (b: Bench) => b.app.announcements.value.map((a) => a.text);

const three: Agents = {
  default: 'claude',
  agents: [
    { name: 'claude', label: 'Claude in the project', kind: 'anthropic', available: true, why: '', tools: ['read_file'] },
    { name: 'echo', label: 'Echo (built in)', kind: 'echo', available: true, why: '', tools: [] },
    { name: 'openclaw', label: 'OpenClaw', kind: 'openclaw', available: false, why: 'nothing answers', tools: [] },
  ],
};

/** A page in the middle of an agent's turn. */
async function working(options: BenchOptions = {}): Promise<Bench> {
  const b = await bench({ turns: 'agent', ...options });
  b.app.submit('look');
  b.socket().say('transcript.final', { text: 'look' });
  b.socket().say('session.state', { value: 'thinking' });
  b.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
  return b;
}

const ask = (change: Record<string, unknown> = {}) => ({
  approvalId: 'a1',
  callId: 'c1',
  name: 'bash',
  summary: 'rm -rf build',
  risk: 'high',
  expiresMs: 60_000,
  ...change,
});

describe('who answers', () => {
  test('the list is read, and what is not one is none', () => {
    expect(readAgents({ default: 'a', agents: [{ name: 'a', tools: ['x', 7] }, { label: 'nameless' }, 7] })).toEqual({
      default: 'a',
      agents: [{ name: 'a', label: 'a', kind: '', available: false, why: '', tools: ['x'] }],
    });
    expect([readAgents(null), readAgents({}), readAgents({ agents: 'x' })]).toEqual([null, null, null]);
  });

  test('no answer, a bad one and an error are no list', async () => {
    const answer = (body: string, status = 200) => fetchAgents('t', async () => new Response(body, { status }));
    expect(await answer('{"default":"a","agents":[]}')).toEqual({ default: 'a', agents: [] });
    expect([await answer('{'), await answer('{}', 404)]).toEqual([null, null]);
    expect(await fetchAgents(null, () => Promise.reject(new Error('x')))).toBeNull();
  });

  test('a choice between turns: asked on the live session, and kept when the gateway has taken it', async () => {
    const b = await bench({ turns: 'agent', agents: three });
    expect(agentChoice(b.app.model.value)).toMatchObject({ present: { name: 'echo' }, off: '' });
    b.app.chooseAgent('claude');
    expect(sent(b, 'session.start').at(-1)).toEqual({ agent: 'claude' });
    expect(b.stored.get('vela.agent')).toBeUndefined();
    b.socket().greet('session-1', { agent: 'claude' });
    expect(b.stored.get('vela.agent')).toBe('claude');
    expect(agentChoice(b.app.model.value)!.present.label).toBe('Claude in the project');
    expect(b.sockets).toHaveLength(1);
  });

  test('refused: the one that answers is still shown, and nothing is kept', async () => {
    const b = await bench({ turns: 'agent', agents: three });
    b.app.chooseAgent('claude');
    b.socket().say('error', { code: 'unsupported', message: 'x', ref: b.socket().sent.at(-1)!.id });
    expect(agentChoice(b.app.model.value)!.present.name).toBe('echo');
    b.socket().greet('session-1', { agent: 'echo' });
    expect(b.stored.get('vela.agent')).toBeUndefined();
  });

  test('not during a turn, not one that is not there, not the present one', async () => {
    const b = await working({ agents: three });
    expect(agentChoice(b.app.model.value)!.off).toBe('Off during a turn.');
    b.app.chooseAgent('claude');
    b.socket().say('session.state', { value: 'idle' });
    for (const name of ['openclaw', 'echo', 'nobody']) b.app.chooseAgent(name);
    expect(sent(b, 'session.start')).toHaveLength(1);
  });

  test('the next visit begins with it, as long as it is there', async () => {
    const visit = async (agents: NonNullable<BenchOptions['agents']> | null) => {
      const b = await bench({ turns: 'agent', agents, greet: false, stored: new Map([['vela.agent', 'claude']]) });
      b.socket().open();
      return b.socket().sent[0]!.payload;
    };
    expect(await visit(three)).toMatchObject({ turns: 'agent', approvals: true, agent: 'claude' });
    // A list that is slow to come is waited for.
    let slow: Promise<Agents> = Promise.resolve(three);
    for (let i = 0; i < 50; i++) slow = slow.then((a) => a);
    expect(await visit(slow)).toHaveProperty('agent');
    const gone = { ...three, agents: three.agents.map((a) => ({ ...a, available: false })) };
    expect(await visit(gone)).not.toHaveProperty('agent');
    expect(await visit(null)).not.toHaveProperty('agent');
  });

  test('only one, or no list: its name and nothing to choose', async () => {
    const one = await bench({ turns: 'agent', agents: { default: 'echo', agents: [three.agents[1]!] } });
    expect(agentChoice(one.app.model.value)).toMatchObject({ present: { name: 'echo' }, others: null });
    const none = await bench({ turns: 'agent' });
    expect(agentChoice(none.app.model.value)).toMatchObject({ present: { name: 'echo', label: 'Echo' }, others: null });
    expect(agentChoice((await bench({ agents: three })).app.model.value)).toBeNull();
  });

  test('a turn keeps the one that answered it', async () => {
    const b = await working({ agents: three });
    b.socket().say('response.completed', { responseId: 'r1' });
    b.socket().say('session.state', { value: 'idle' });
    b.app.chooseAgent('claude');
    b.socket().greet('session-1', { agent: 'claude' });
    expect([last(b).agent, talk(b).agent]).toEqual(['echo', 'claude']);
  });
});

describe('thoughts', () => {
  test('go on until something else comes', async () => {
    const b = await working();
    b.socket().say('thinking.delta', { text: 'hm' });
    expect(last(b)).toMatchObject({ thought: 'hm', thinking: true });
    b.socket().say('tool.call', { callId: 'c1', name: 'x', input: {} });
    expect(last(b).thinking).toBe(false);
    b.socket().say('thinking.delta', { text: '.' });
    b.socket().say('response.cancelled', { responseId: 'r1', reason: 'client', heardText: '', playedMs: 0 });
    expect(last(b)).toMatchObject({ thought: 'hm.', thinking: false });
  });
});

describe('tools', () => {
  test.each([
    [{ command: 'ls', path: 'a' }, 'a'],
    [{ query: 'q', pattern: 'p' }, 'p'],
    [{ path: '', file_path: 'f' }, 'f'],
    [{ limit: 3, other: 'x' }, ''],
    [{ path: { deep: 1 }, command: 'a\n  b' }, 'a b'],
  ])('%j says most by %j', (input, detail) => expect(detailOf(input)).toBe(detail));

  test('what went in and out: lines, as long as they can be read', () => {
    expect(evidence({ content: 'as it\nis' })).toBe('as it\nis');
    expect(evidence({ path: 'a', text: 'b\nc', n: [1] })).toBe('path: a\ntext:\nb\nc\nn:\n[\n  1\n]');
    expect(evidence(undefined)).toBe('');
    expect(evidence({ content: 'x'.repeat(30_000) })).toMatch(/^x{20000}\n… and 10,000 more characters$/);
  });

  test('a long turn keeps its last steps', async () => {
    const b = await working();
    for (let i = 0; i < 600; i++) b.socket().say('tool.call', { callId: `c${i}`, name: 'x', input: {} });
    expect(last(b).steps).toHaveLength(500);
    expect(last(b).steps.at(-1)!.id).toBe('c599');
  });
});

describe('the status line', () => {
  test.each([
    ['thinking', '', 'Thinking', ''],
    ['searching_files', 'a/b/c', 'Searching files', '.../b/c'],
    ['searching_files', 'a/b/c|x y', 'Searching files', 'a/b/c|x y'],
    ['reading_file', '/home/me/session/fsm.go', 'Reading', '.../session/fsm.go'],
    ['writing_file', 'a/b', 'Writing', 'a/b'],
    ['editing_file', 'C:\\a\\b\\c', 'Editing', '.../b/c'],
    ['web_search', 'a/b/c', 'Searching the web', 'a/b/c'],
    ['executing_command', 'go test -race ./session -run X', 'Running', 'go test -race ./session -run X'],
    ['executing_command', 'go test -race ./session -run XY', 'Running', 'go test -race ./session -ru...'],
    ['analyzing', '', 'Analysing', ''],
    ['juggling', 'x', 'Thinking', 'x'],
    ['constructor', '', 'Thinking', ''],
  ])('%s %s: %s %s', (action, detail, verb, shown) => {
    expect(statusOf({ type: 'status', action: action as StatusAction, detail }, 7)).toMatchObject({ verb, detail: shown, since: 7 });
  });

  test('the phrase of a silent agent stands alone, is not read aloud, and goes when it speaks', async () => {
    const b = await working();
    status(b, 'thinking', 'Looking into it');
    expect(talk(b).status).toMatchObject({ verb: 'Looking into it', detail: '' });
    b.timers.advance(3000);
    status(b, 'thinking', 'Still on it');
    expect(told(b).filter((t) => /it$/.test(t))).toEqual([]);
    b.socket().say('response.text.delta', { text: 'It is', responseId: 'r1' });
    expect(talk(b).status).toBeNull();
    status(b, 'reading_file', 'a');
    b.socket().say('response.text.delta', { text: ' so.', responseId: 'r1' });
    expect(talk(b).status).toMatchObject({ verb: 'Reading' });
  });

  test('what a tool without an action of its own works on is no phrase', async () => {
    const b = await working();
    b.socket().say('tool.call', { callId: 'c1', name: 'files_move', input: { path: 'a/b' } });
    status(b, 'thinking', 'a/b');
    expect(talk(b).status).toMatchObject({ verb: 'Thinking', detail: 'a/b' });
  });

  test('two parts are no long path, and thirty characters no long command', () => {
    expect([shortPath('/a/b'), shortPath('/a/b/c'), shortCommand('x'.repeat(30)), shortCommand('x'.repeat(31))]).toEqual([
      '/a/b',
      '.../b/c',
      'x'.repeat(30),
      `${'x'.repeat(27)}...`,
    ]);
  });

  const status = (b: Bench, action: string, detail = '') => b.socket().say('status', { type: 'status', action, detail });

  test('goes 5 s after the last one', async () => {
    const b = await working();
    status(b, 'reading_file', 'a');
    b.timers.advance(4000);
    status(b, 'editing_file', 'a');
    b.timers.advance(4999);
    expect(talk(b).status).toMatchObject({ verb: 'Editing' });
    b.timers.advance(1);
    expect(talk(b).status).toBeNull();
  });

  test.each([
    ['response.completed', { responseId: 'r1' }],
    ['response.cancelled', { responseId: 'r1', reason: 'error', heardText: '', playedMs: 0 }],
    ['session.state', { value: 'idle' }],
  ])('goes with %s', async (type, payload) => {
    const b = await working();
    status(b, 'reading_file', 'a');
    b.socket().say(type, payload);
    expect(talk(b).status).toBeNull();
  });

  test('of a source that is followed says whose it is', async () => {
    const b = await bench({ turns: 'agent', stored: new Map([['vela.follow', '[["remote:1","Lab"]]']]) });
    const guest = (source: string, detail: string) => b.socket().say('status', { type: 'status', action: 'reading_file', detail, source });
    guest('remote:1', 'a');
    b.timers.advance(2000);
    guest('remote:1', 'a'); // the same
    guest('local:claude-code', 'a'); // of whom nothing else is known
    expect(talk(b).status).toMatchObject({ verb: 'Reading', source: 'local:claude-code' });
    expect(told(b).filter((t) => /Reading/.test(t))).toEqual(['Lab Reading a', 'claude-code Reading a']);
    expect(b.app.nameOf({ ...talk(b).status!, source: 'remote:1' })).toBe('Lab');
    expect(statusOf({ type: 'status', action: 'thinking', detail: 'hm', source: 'x' }, 7)).toMatchObject({ source: 'x' });
  });

  test('is read aloud now and then, and never what the phase has said', async () => {
    const b = await working();
    status(b, 'thinking');
    status(b, 'reading_file', 'a');
    status(b, 'reading_file', 'b');
    b.timers.advance(1999);
    status(b, 'editing_file', 'c');
    b.timers.advance(1);
    status(b, 'executing_command', 'd');
    expect(told(b).filter((t) => !/^(You|Conn|Thinking$)/.test(t))).toEqual(['Reading a', 'Running d']);
  });

  test('of another agent says whose it is, and is shown while nobody talks', async () => {
    const b = await working();
    b.socket().say('response.completed', { responseId: 'r1' });
    b.socket().say('session.state', { value: 'idle' });
    expect(view(b).told).toBe(false);
    b.app.names.value = new Map([['remote:1', 'the lab']]);
    b.socket().say('status', { type: 'status', action: 'reading_file', detail: 'a', source: 'remote:1' });
    expect(view(b)).toMatchObject({ small: 'Hold to talk', spaceHint: false });
    expect([view(b).told, b.app.nameOf(talk(b).status!), told(b).at(-1)]).toEqual([true, 'the lab', 'the lab Reading a']);
    b.timers.advance(5000);
    expect(view(b).told).toBe(false);
    b.socket().say('status', { type: 'status', action: 'reading_file', detail: 'a', source: 'local:claude-code' });
    expect(told(b).at(-1)).toBe('claude-code Reading a');
  });
});

describe('sources that are followed', () => {
  const follows = (b: Bench) => sent(b, 'session.start').flatMap((p) => ('follow' in p ? [p.follow] : []));
  const may = { features: ['text', 'signals'] };
  const visit = (stored: [string, string][] = [['vela.follow', '[["remote:1","Lab"],["local:openclaw","OpenClaw"]]']]) => bench({ turns: 'agent', greet: false, stored: new Map(stored) });

  test('are asked for in each new session that may, once, and again when the choice changes', async () => {
    const b = await visit();
    b.socket().open();
    b.socket().greet('session-1', may);
    expect(follows(b)).toEqual([['remote:1', 'local:openclaw']]);
    b.socket().greet('session-1', { ...may, follow: ['remote:1', 'local:openclaw'] });
    b.socket().say('session.state', { value: 'idle' });
    expect(follows(b)).toHaveLength(1);
    b.app.change({ follow: { 'remote:1': 'Lab' } });
    expect(follows(b).at(-1)).toEqual(['remote:1']);
    expect(b.stored.get('vela.follow')).toBe('[["remote:1","Lab"]]');
    b.socket().greet('session-2', may);
    expect(follows(b)).toHaveLength(3);
  });

  test('are not asked for where nobody chose any, or the session may not', async () => {
    const [none, may_not] = [await visit([]), await visit()];
    for (const b of [none, may_not]) b.socket().open();
    none.socket().greet('session-1', may);
    may_not.socket().greet('session-1');
    expect([follows(none), follows(may_not)]).toEqual([[], []]);
  });

  test('a refusal is the end of it, a turn that came in between is not', async () => {
    const b = await visit();
    b.socket().open();
    b.socket().greet('session-1', may);
    const refuse = (code: string) => b.socket().say('error', { code, message: 'x', ref: b.socket().sent.at(-1)!.id });
    refuse('turn_in_flight');
    b.socket().say('session.state', { value: 'idle' });
    expect(follows(b)).toHaveLength(2);
    refuse('unsupported');
    b.socket().say('session.state', { value: 'idle' });
    expect(follows(b)).toHaveLength(2);
  });

  test.each(['{', '7', '[7]', '{"a":1}', 'null', '[["a"],["b","B",3]]'])('%s in the store stops nothing', async (text) => {
    const b = await visit([['vela.follow', text]]);
    b.socket().open();
    b.socket().greet('session-1', may);
    expect(talk(b).sessionId).toBe('session-1');
  });
});

describe('questions', () => {
  test('one is asked, answered once, and told with its tool', async () => {
    const b = await working();
    b.socket().say('tool.call', { callId: 'c1', name: 'bash', input: {} });
    b.socket().say('approval.request', ask());
    expect(last(b).approvals).toMatchObject([{ id: 'a1', risk: 'high', outcome: 'asked', until: b.timers.now() + 60_000 }]);
    expect(view(b).title).toBe('Echo waits for your answer');
    expect(b.app.answer('a1', true, true)).toBe(true);
    expect(b.app.answer('a1', false, false)).toBe(false);
    expect(sent(b, 'approval.answer')).toEqual([{ approvalId: 'a1', allow: true, remember: true }]);
    expect(view(b).title).toBe('Working on it');
    b.socket().say('tool.result', { callId: 'c1', name: 'bash', success: true });
    expect(last(b).approvals).toMatchObject([{ outcome: 'allowed' }]);
    b.app.saveTranscript();
    expect(b.saved[0]!.text).toContain('- `bash` (you allowed it)');
  });

  test('a no, without remembering', async () => {
    const b = await working();
    b.socket().say('approval.request', ask());
    b.app.answer('a1', false, false);
    expect(sent(b, 'approval.answer')).toEqual([{ approvalId: 'a1', allow: false }]);
    expect(last(b).approvals[0]!.outcome).toBe('denied');
  });

  test.each([
    ['the result of its tool', 'tool.result', { callId: 'c1', name: 'bash', success: true }, 0],
    ['the result of another', 'tool.result', { callId: 'c2', name: 'bash', success: true }, 1],
    ['the end of the answer', 'response.completed', { responseId: 'r1' }, 0],
    ['its being cancelled', 'response.cancelled', { responseId: 'r1', reason: 'client', heardText: '', playedMs: 0 }, 0],
    ['an idle', 'session.state', { value: 'idle' }, 0],
  ])('%s: what is left to answer', async (_, type, payload, left) => {
    const b = await working();
    b.socket().say('approval.request', ask());
    b.socket().say(type, payload);
    expect(last(b).approvals).toHaveLength(left);
    expect(b.app.answer('a1', true, false)).toBe(left === 1);
  });

  test('its time runs out', async () => {
    const b = await working();
    b.socket().say('approval.request', ask());
    b.socket().say('approval.request', ask({ approvalId: 'a2', callId: 'c2', expiresMs: 90_000 }));
    b.timers.advance(59_999);
    expect(last(b).approvals.map((a) => a.outcome)).toEqual(['asked', 'asked']);
    b.timers.advance(1);
    expect(last(b).approvals.map((a) => a.outcome)).toEqual(['too late', 'asked']);
    expect(b.app.answer('a1', true, false)).toBe(false);
  });

  test('what is not said to be of low risk is of high risk; hostile words are plain', async () => {
    const b = await working();
    b.socket().say('approval.request', ask({ risk: 'none', name: 'ba\u202esh', summary: `\u202egnp.exe${'x'.repeat(3000)}` }));
    const [a] = last(b).approvals;
    expect(a).toMatchObject({ risk: 'high', name: 'ba⟨U+202E⟩sh' });
    expect(a!.summary.startsWith('⟨U+202E⟩gnp.exe')).toBe(true);
    expect(a!.summary.length).toBeLessThan(2020);
  });

  test('a lost connection keeps it, and it can be answered when that is back', async () => {
    const b = await working();
    b.socket().say('approval.request', ask());
    b.socket().end(1006);
    expect(b.app.answer('a1', true, false)).toBe(false);
    expect(last(b).approvals[0]!.outcome).toBe('asked');
    b.timers.advance(1000);
    b.socket().welcome(5);
    expect(b.app.answer('a1', true, false)).toBe(true);
  });

  /** What the gateway says again to a page that was loaded again in the middle of it. */
  async function reloaded(before: (b: Bench) => void, after: (b: Bench) => void): Promise<Bench> {
    const tab = new FakeStore();
    const b = await working({ tab });
    b.socket().say('approval.request', ask());
    before(b);
    b.app.leaving();
    const { seq } = b.socket();
    const again = await bench({ turns: 'agent', tab, greet: false });
    again.socket().welcome(0, seq);
    again.socket().say('session.state', { value: 'idle' });
    again.socket().say('transcript.final', { text: 'look' });
    again.socket().say('session.state', { value: 'thinking' });
    again.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
    again.socket().say('approval.request', ask());
    after(again);
    return again;
  }

  test('after a reload: one that is open is asked, one that is over is not', async () => {
    const open = await reloaded(
      () => {},
      () => {},
    );
    expect(last(open).approvals.map((a) => a.outcome)).toEqual(['asked']);
    const result = (b: Bench): void => b.socket().say('tool.result', { callId: 'c1', name: 'bash', success: true });
    expect(last(await reloaded(result, result)).approvals).toEqual([]);
  });

  test('after a reload: one that was answered is not asked again while its tool runs', async () => {
    const b = await reloaded(
      (before) => void before.app.answer('a1', false, false),
      () => {},
    );
    expect(last(b).approvals.map((a) => a.outcome)).toEqual(['denied']);
    expect(sent(b, 'approval.answer')).toEqual([]);
  });

  test('after a reload: the time that has passed is passed', async () => {
    const tab = new FakeStore();
    const b = await working({ tab });
    b.socket().say('approval.request', ask());
    b.app.leaving();
    const again = await bench({ turns: 'agent', tab, greet: false, later: 50_000 });
    again.socket().welcome(0, 2);
    again.socket().say('response.created', { responseId: 'r1', turnId: 't1' });
    again.socket().say('approval.request', ask());
    again.timers.advance(9_000);
    expect(last(again).approvals[0]!.outcome).toBe('asked');
    again.timers.advance(1_100);
    expect(last(again).approvals[0]!.outcome).toBe('too late');
  });

  test('answers that are kept are taken once, and nonsense is none', () => {
    const store = new FakeStore();
    const one = { id: 'a', callId: 'c', name: 'n', summary: 's', risk: 'low', until: 0, outcome: 'allowed' } as const;
    keepAnswers(store, [one, { ...one, id: 'b', outcome: 'asked' }]);
    expect([...takeAnswers(store)]).toEqual([['a', 'allowed']]);
    expect([...takeAnswers(store)]).toEqual([]);
    for (const nonsense of ['{', '7', '[["a","maybe"]]', '[7]']) {
      store.setItem('vela.answered', nonsense);
      expect(takeAnswers(store).size).toBe(0);
    }
    keepAnswers(null, [one]);
    expect(takeAnswers(null).size).toBe(0);
  });

  test.each([
    [60_000, '60 seconds to answer'],
    [1, '1 second to answer'],
    [0, '0 seconds to answer'],
    [-5, '0 seconds to answer'],
    [90_001, 'About 2 minutes to answer'],
    [240_000, 'About 4 minutes to answer'],
  ])('%i ms: %s', (left, words) => expect(timeLeft(1000 + left, 1000)).toBe(words));
});

describe('artifacts', () => {
  const show = (b: Bench, n: number) =>
    b.socket().say('artifact', { type: 'artifact', artifact_type: 'error', title: `e${n}`, message: 'm' });

  test('the last ten, the newest shown, unless an older one is looked at', async () => {
    const b = await working();
    const shown = () => shownOf(b.app.viewer.value, talk(b).artifacts)!.title;
    for (let n = 1; n <= 12; n++) show(b, n);
    expect(talk(b).artifacts.map((a) => a.title)).toEqual(['e3', 'e4', 'e5', 'e6', 'e7', 'e8', 'e9', 'e10', 'e11', 'e12']);
    expect(shown()).toBe('e12');
    b.app.chooseArtifact(talk(b).artifacts[8]!.id);
    show(b, 13);
    expect([shown(), newer(b.app.viewer.value, talk(b).artifacts)]).toEqual(['e11', 2]);
    b.app.chooseArtifact(talk(b).artifacts.at(-1)!.id);
    show(b, 14);
    expect(shown()).toBe('e14');
    expect(told(b).at(-1)).toBe('New artifact, e14');
  });

  test('one that falls out of the ten is looked at no more', async () => {
    const b = await working();
    show(b, 1);
    show(b, 2);
    b.app.chooseArtifact(talk(b).artifacts[0]!.id);
    for (let n = 3; n <= 11; n++) show(b, n);
    expect(shownOf(b.app.viewer.value, talk(b).artifacts)!.title).toBe('e11');
  });

  test('where the focus is among them, what is shown does not change by itself', () => {
    const all = [1, 2].map((id) => ({ id, title: '', at: 0, agent: '', body: { kind: 'error', message: '' } }) as const);
    expect(onArtifact({ ...unwatched, focused: true }, all)).toMatchObject({ chosen: 2 });
    expect(onArtifact({ ...unwatched, focused: true, open: false }, all).chosen).toBeNull();
    expect(onArtifact(unwatched, all).chosen).toBeNull();
    expect([choose(unwatched, all, 1).chosen, choose(unwatched, all, 2).chosen]).toEqual([1, null]);
  });

  test('a new conversation has none', async () => {
    const b = await working();
    show(b, 1);
    b.socket().say('response.completed', { responseId: 'r1', usage: { promptTokens: 5, completionTokens: 2 } });
    b.socket().say('session.state', { value: 'idle' });
    b.app.newConversation();
    b.socket().say('history', { items: [] });
    expect(talk(b)).toMatchObject({ artifacts: [], spent: null });
  });

  test.each([
    [{ artifact_type: 'diff', file: 'a/b.go', diff: 'd' }, 'b.go', 'd'],
    [{ artifact_type: 'code', content: 'c', startLine: -1 }, 'Code', 'c'],
    [{ artifact_type: 'markdown', content: 'm', path: 'x/y.md', title: 'T' }, 'T', 'm'],
    [{ artifact_type: 'file', content: 'f', path: 7 }, 'File', 'f'],
    [{ artifact_type: 'search_results', query: 'q', results: [{ file: 'a', line: 3, content: 'x' }, { file: 'b' }, 7] }, 'q', 'a:3:x\nb'],
    [{ artifact_type: 'error', message: 'bad', stack: 'secret' }, 'Error', 'bad'],
  ])('%j is called %s', (payload, title, whole) => {
    const body = readBody({ type: 'artifact', ...payload } as ArtifactPayload)!;
    expect([titleOf((payload as { title?: string }).title, body), wholeText(body)]).toEqual([title, whole]);
  });

  test.each([{ artifact_type: 'hologram' }, { artifact_type: 'diff' }, { artifact_type: 'code', content: 7 }, { artifact_type: 'search_results' }])(
    '%j is passed over',
    async (payload) => {
      const b = await working();
      b.socket().say('artifact', { type: 'artifact', ...payload });
      expect(talk(b).artifacts).toEqual([]);
      expect(b.app.model.value.connection.state).toBe('connected');
    },
  );
});

describe('what it took', () => {
  test('of each answer, and of the conversation', async () => {
    const b = await working();
    b.socket().say('response.completed', { responseId: 'r1', usage: { promptTokens: 100, completionTokens: 20 } });
    expect(last(b).usage).toEqual({ promptTokens: 100, completionTokens: 20 });
    b.socket().say('session.state', { value: 'idle' });
    b.app.submit('more');
    b.socket().say('response.created', { responseId: 'r2', turnId: 't2' });
    b.socket().say('response.completed', { responseId: 'r2', usage: { promptTokens: 11, completionTokens: 3 } });
    expect(talk(b).spent).toEqual({ promptTokens: 111, completionTokens: 23 });
    b.socket().say('response.completed', { responseId: 'r3' });
    expect(talk(b).spent).toEqual({ promptTokens: 111, completionTokens: 23 });
  });
});

describe('what others wrote', () => {
  test('what turns text round and what controls is written out', () => {
    expect(plain('a\u202eb\u2066c\u0007\td\ne\r\n')).toBe('a⟨U+202E⟩b⟨U+2066⟩c⟨U+0007⟩\td\ne\n');
    expect(plain('שלום é 🧵')).toBe('שלום é 🧵');
  });
  test('one line, and no more', () => {
    expect([oneLine(' a \n b '), oneLine('x'.repeat(9), 3), oneLine(`a${' '.repeat(9000)}b`, 3)]).toEqual(['a b', 'xxx…', 'a…']);
  });
  test.each([
    ['status', {}],
    ['status', { action: 'x', detail: 7 }],
    ['artifact', { title: 'x' }],
    ['artifact', { artifact_type: 'x', title: 7 }],
    ['approval.request', { ...ask(), expiresMs: 'soon' }],
  ])('a %s of %j is malformed', (type, payload) => {
    expect(decode2(JSON.stringify({ type, payload, seq: 1 })).kind).toBe('malformed');
  });
});
