// vela livekit, against the real server.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { program, startVela } from '../browser/lib/vela.mjs';
import { speak } from '../browser/lib/speech.mjs';
import { key, secret, startLiveKit } from './lib/livekit.mjs';

let livekit, vela;
const env = (more) => ({ ...process.env, LIVEKIT_URL: livekit.url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret, ...more });
before(async () => {
  livekit = await startLiveKit();
  vela = await startVela(['--turns', 'agent'], '127.0.0.1:0', env());
});
after(async () => {
  await vela?.stop();
  await livekit?.stop();
});

/** Runs it to its end. */
const run = (args, variables) =>
  new Promise((resolve) => {
    execFile(program, ['livekit', ...args], { env: env(variables), timeout: 60_000 }, (error, out, errs) => resolve({ code: error?.code ?? 0, out, errs }));
  });

test('join says a WAV file and prints the answer', async () => {
  const { file } = speak('what time is it', { before: 0.3, after: 0.3 });
  const { code, out, errs } = await run(['join', 'terminal', '--file', file, '--as', 'ann']);
  assert.equal(code, 0, errs);
  assert.match(out, /^ann: (what time .*)\nagent-\w+: You said: \1\n$/, errs);
  for (const line of ['the agent: thinking', 'the agent: speaking', 'event: {"type":"content"']) assert.ok(errs.includes(line), errs);
  assert.match((await run(['check', 'terminal'])).out, /^ok +agent +it is in the room, as agent-/m);
});

test('check says what is wrong and what to do', async () => {
  const good = await run(['check']);
  assert.deepEqual([good.code, good.out.match(/^ok/gm)?.length], [0, 6], good.out);
  assert.match(good.out, /^ok +version +it is 1\.\d+\.\d+$/m);
  for (const [args, variables, says] of [
    [['check'], { LIVEKIT_URL: 'ws://127.0.0.1:9' }, /^wrong +address[^]*make livekit/m],
    [['check'], { LIVEKIT_API_SECRET: 'wrong-secret-wrong-secret-wrong-secret' }, /^wrong +key[^]*LIVEKIT_API_SECRET/m],
    [['check', 'nobody'], {}, /^wrong +agent +nobody is in that room now\n.*the agent follows/m],
    [['check'], { LIVEKIT_URL: '' }, /^vela: LiveKit is not configured: set LIVEKIT_URL/],
    [['check'], { LIVEKIT_API_KEY: '' }, /^vela: LiveKit's address is given, but not its key/],
  ]) {
    const { code, out, errs } = await run(args, variables);
    assert.equal(code, 1);
    assert.match(out + errs, says);
    assert.doesNotMatch(out + errs, /wrong-secret|eyJ/);
  }
});
