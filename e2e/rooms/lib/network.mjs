// A network between a LiveKit server and some of its clients, which can be cut. It is two proxies on loopback: one before the server's
// signalling, and one before its media, at the address that the server tells clients (its node_ip) and on its own port.
import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import net from 'node:net';

/** Where the media proxy is: a server that is behind one tells its clients this address. */
export const mediaAddress = '127.0.0.2';

/**
 * Starts one. Clients whose media was there before spare() was called are never cut, like those that signal to the server directly.
 */
export async function startNetwork(server) {
  let isCut = false;
  const waiting = new Set(); // what waits for the signalling to go on
  const sockets = new Set();
  const signalling = net.createServer((near) => {
    const far = net.connect(server.port, '127.0.0.1');
    for (const [from, to] of [[near, far], [far, near]]) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (!isCut) return to.write(bytes);
        from.pause(); // nothing of it is lost: it would be sent again
        waiting.add(() => (to.write(bytes), from.resume()));
      });
      from.on('error', () => {});
      from.on('close', () => (sockets.delete(from), to.destroy()));
    }
  });
  signalling.listen(0, '127.0.0.1');
  await once(signalling, 'listening');

  const flows = new Map(); // by the client's address: its socket towards the server
  const media = createSocket('udp4');
  media.on('message', (packet, { address, port }) => {
    const client = `${address}:${port}`;
    let flow = flows.get(client);
    if (!flow) {
      flow = { socket: createSocket('udp4'), spared: false, bytes: 0 };
      flow.socket.on('message', (answer) => {
        if (!isCut || flow.spared) media.send(answer, port, address);
      });
      flow.socket.on('error', () => {});
      flows.set(client, flow);
    }
    if (!isCut || flow.spared) flow.socket.send(packet, server.udp, '127.0.0.1');
  });
  media.bind(server.udp, mediaAddress);
  await once(media, 'listening');

  return {
    url: `ws://127.0.0.1:${signalling.address().port}`,
    flows,
    spare: () => flows.forEach((flow) => (flow.spared = true)),
    cut: () => (isCut = true),
    mend() {
      isCut = false;
      waiting.forEach((go) => go());
      waiting.clear();
    },
    async stop() {
      sockets.forEach((socket) => socket.destroy());
      flows.forEach(({ socket }) => socket.close());
      media.close();
      signalling.close();
      await once(signalling, 'close');
    },
  };
}
