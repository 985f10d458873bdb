// The real LiveKit server as a process of its own, on loopback.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { freePort, freeUDPPort } from '../../browser/lib/ports.mjs';

const program = process.env.LIVEKIT_BIN || fileURLToPath(new URL('../../../bin/livekit-server', import.meta.url));
export const key = 'e2ekey';
export const secret = 'e2e-secret-e2e-secret-e2e-secret-32';

const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Starts a server on free ports, or on those of one that has ended, and waits until it answers. `media` is the address that clients are told. */
export async function startLiveKit({ port, udp, webhook, media = '127.0.0.1' } = {}) {
  port ??= await freePort();
  udp ??= await freeUDPPort();
  const loopback = media.startsWith('127.');
  const config = {
    port,
    bind_addresses: ['127.0.0.1'],
    rtc: {
      udp_port: udp, tcp_port: 0, use_external_ip: false, node_ip: media,
      ...(loopback && { enable_loopback_candidate: true, interfaces: { includes: ['lo'] } }), stun_servers: ['127.0.0.1:3478'], use_ice_lite: loopback && media !== '127.0.0.1',
    },
    keys: { [key]: secret },
    logging: { level: 'warn' },
    ...(webhook && { webhook: { api_key: key, urls: [webhook] } }),
  };
  const child = spawn(program, ['--config-body', JSON.stringify(config)], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const server = { url: `ws://127.0.0.1:${port}`, http: `http://127.0.0.1:${port}`, port, udp, log: '', kill, stop };
  for (const out of [child.stdout, child.stderr]) out.setEncoding('utf8').on('data', (text) => (server.log += text));
  const gone = once(child, 'exit').then(() => running.delete(child));
  for (;;) {
    const answers = await fetch(server.http).then((r) => r.ok, () => false);
    if (answers) return server;
    if (child.exitCode !== null) throw new Error(`the LiveKit server ended: ${server.log}`);
    await new Promise((again) => setTimeout(again, 50));
  }

  /** Ends it at once, as a crash would. */
  async function kill() {
    child.kill('SIGKILL');
    await gone;
  }

  async function stop() {
    child.kill('SIGKILL'); // it would wait for its rooms
    await gone;
  }
}

/** A token as LiveKit's own tools make them, with any grant. */
export function sign(grant, { identity = 'e2e', apiKey = key, apiSecret = secret, ttl = 600, from = -10, kind, sha256 } = {}) {
  const now = Math.floor(Date.now() / 1000);
  const part = (object) => Buffer.from(JSON.stringify(object)).toString('base64url');
  const body = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: apiKey, sub: identity, nbf: now + from, exp: now + ttl, video: grant, kind, sha256 })}`;
  return `${body}.${createHmac('sha256', apiSecret).update(body).digest('base64url')}`;
}

/** Calls LiveKit's own API. */
export async function api(server, method, request, grant) {
  const answer = await fetch(`${server.http}/twirp/livekit.RoomService/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${sign(grant)}` },
    body: JSON.stringify(request),
  });
  if (!answer.ok) throw new Error(`${method}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
