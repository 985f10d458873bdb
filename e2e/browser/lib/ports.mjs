// Ports that are none of those that systems give to who does not choose: such a port stays free until it is taken, and while its server is away.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';

const anyPort = () => 20_000 + Math.floor(Math.random() * 12_000);

/** A port of loopback for TCP. */
export async function freePort() {
  for (;;) {
    const server = net.createServer().listen(anyPort(), '127.0.0.1');
    if (!(await once(server, 'listening').then(() => true, () => false))) continue;
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** The same for UDP. */
export async function freeUDPPort() {
  for (;;) {
    const socket = createSocket('udp4').bind(anyPort(), '127.0.0.1');
    if (!(await once(socket, 'listening').then(() => true, () => false))) continue;
    const { port } = socket.address();
    socket.close();
    return port;
  }
}
