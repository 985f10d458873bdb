// The built program as a process of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const program = process.env.VELA_BIN || fileURLToPath(new URL('../../../bin/vela', import.meta.url));
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Starts `vela serve` and waits until it says where it is. */
export async function startVela(args = [], addr = '127.0.0.1:0', variables = {}) {
  const child = spawn(program, ['serve', '--addr', addr, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, VELA_LOG_LEVEL: 'warn', ...variables },
  });
  running.add(child);
  const gone = once(child, 'exit').then(([code, signal]) => {
    running.delete(child);
    return { code, signal };
  });
  const vela = { host: '', url: '', out: '', log: '', stop, kill };
  child.stderr.setEncoding('utf8').on('data', (text) => (vela.log += text));
  vela.url = await new Promise((resolve, reject) => {
    let out = '';
    child.on('error', reject);
    gone.then(({ code }) => reject(new Error(`vela serve ended with ${code}: ${vela.log}`)));
    child.stdout.setEncoding('utf8').on('data', (text) => {
      vela.out = out += text;
      const line = /^Vela is at (https?:\/\/\S+)\n/m.exec(out);
      if (line) resolve(line[1]);
    });
  });
  vela.host = new URL(vela.url).host;
  return vela;

  /** Tells it to stop, as a service manager would, and waits until it has. */
  async function stop() {
    child.kill('SIGTERM');
    return gone;
  }

  /** Ends it at once, as a crash would. */
  async function kill() {
    child.kill('SIGKILL');
    return gone;
  }
}

/** The same with a vela.yaml of the test's own. */
export async function startVelaWith(settings) {
  const folder = mkdtempSync(join(tmpdir(), 'vela-settings-'));
  const file = join(folder, 'vela.yaml');
  writeFileSync(file, settings);
  const vela = await startVela(['--config', file]);
  return {
    ...vela,
    async stop() {
      await vela.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Settings with a voice of which it is known to the sample which words have been heard. */
export const toneVoice = `voices:
  - {kind: command, command: [${JSON.stringify(process.execPath)}, ${JSON.stringify(fileURLToPath(new URL('tonevoice.mjs', import.meta.url)))}]}
`;
