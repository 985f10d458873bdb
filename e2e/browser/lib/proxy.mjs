// Stands between the page and the gateway: it records every message, and holds back, cuts off, answers in the place of either when told to.
import { once } from 'node:events';
import http from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';

/** The type that a message says it has. */
function typeOf(text) {
  try {
    return JSON.parse(text).type;
  } catch {
    return 'unreadable';
  }
}

/** A proxy before the gateway at `host`. Messages are passed on as they are; the page's own origin is the proxy's. */
export async function startProxy(host) {
  const [hostname, port] = host.split(':');
  // The gateway chooses the subprotocol; what it chose is on the socket to it, which is open before the page's handshake is answered.
  const upgrades = new WebSocketServer({ noServer: true, perMessageDeflate: false, handleProtocols: (_, req) => req.chosen || false });
  const pairs = new Set();
  const proxy = {
    /** Messages of the page, as they came; without its frames of sound. */
    sent: [],
    /** When each of them came, by performance.now(). */
    sentAt: [],
    /** Its binary frames. */
    sound: [],
    /** What the page did, in order: types of messages, and 'sound'. */
    done: [],
    /** The subprotocols that the page offered, with each socket. */
    offered: [],
    /** Messages that the page was given. */
    given: [],
    /** Scripts of a test, by their path, as if they were the gateway's. */
    scripts: new Map(),
    /** The addresses of the sockets that the page asked for. */
    asked: [],
    url: '',
    /** 'pass', 'wait' (the handshake is not answered yet) or 'refuse' (the connection is dropped). */
    handshake: 'pass',
    /** Messages of the gateway are kept back from the first for which this is true, until pass(); from the next such one on, if it is given. */
    holdFrom: () => false,
    pass,
    inject: (data) => each(({ page }) => give(page, data, typeof data !== 'string')),
    /** To the gateway, in the page's name. */
    send: (data) => each(({ gateway }) => gateway.send(data)),
    close: (code, reason = '') => each(({ page }) => page.close(code, reason)),
    cut: () => each(({ page }) => page.terminate()),
    /** A frame that RFC 6455 forbids: a reserved opcode, with every reserved bit set. */
    breakFrame: () => each(({ page }) => page._socket.write(Buffer.from([0xff, 0x00]))),
    stop,
  };

  const server = http.createServer((req, res) => {
    if (proxy.scripts.has(req.url)) return res.writeHead(200, { 'content-type': 'text/javascript' }).end(proxy.scripts.get(req.url));
    const onward = http.request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  });
  server.on('upgrade', async (req, socket, head) => {
    proxy.asked.push(req.url);
    socket.on('error', () => {});
    while (proxy.handshake === 'wait') await once(upgrades, 'handshake');
    if (proxy.handshake === 'refuse') return socket.destroy();
    const offered = req.headers['sec-websocket-protocol']?.split(/\s*,\s*/) ?? [];
    proxy.offered.push(offered);
    const gateway = new WebSocket(`ws://${host}${req.url}`, offered, {
      headers: { host: req.headers.host, origin: req.headers.origin },
      perMessageDeflate: false,
    });
    // Whatever it says at once is heard before the page is there to be told.
    const early = [];
    gateway.on('message', (data, binary) => early.push([data, binary]));
    gateway.once('error', () => socket.destroy());
    gateway.once('open', () => {
      req.chosen = gateway.protocol;
      upgrades.handleUpgrade(req, socket, head, (page) => {
        gateway.removeAllListeners('message');
        join(page, gateway, early);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.url = `http://127.0.0.1:${server.address().port}`;

  let handshake = proxy.handshake;
  Object.defineProperty(proxy, 'handshake', {
    get: () => handshake,
    set: (value) => {
      handshake = value;
      upgrades.emit('handshake');
    },
  });
  return proxy;

  function join(page, gateway, early) {
    const pair = { page, gateway, held: null };
    pairs.add(pair);
    page.on('message', (data, binary) => {
      if (binary) proxy.sound.push(data);
      else (proxy.sent.push(String(data)), proxy.sentAt.push(performance.now()));
      proxy.done.push(binary ? 'sound' : typeOf(String(data)));
      gateway.send(data, { binary });
    });
    gateway.on('message', (data, binary) => onward(pair, data, binary));
    for (const [data, binary] of early) onward(pair, data, binary);
    for (const [from, to] of [
      [page, gateway],
      [gateway, page],
    ]) {
      from.on('error', () => {});
      from.on('close', (code, reason) => {
        pairs.delete(pair);
        if (code === 1006 || code === 1005) to.terminate();
        else to.close(code, reason);
      });
    }
  }

  function onward(pair, data, binary) {
    if (!pair.held && proxy.holdFrom(String(data))) pair.held = [];
    if (pair.held) pair.held.push([data, binary]);
    else give(pair.page, data, binary);
  }

  function give(page, data, binary) {
    const text = String(data);
    proxy.given.push(text);
    page.send(binary ? data : text, { binary });
  }

  function each(run) {
    if (pairs.size === 0) throw new Error('the page is not connected');
    pairs.forEach(run);
  }

  function pass(next = () => false) {
    proxy.holdFrom = next;
    for (const pair of pairs) {
      const held = pair.held ?? [];
      pair.held = null;
      for (const [data, binary] of held) onward(pair, data, binary);
    }
  }

  async function stop() {
    handshake = 'refuse';
    upgrades.emit('handshake');
    pairs.forEach(({ page, gateway }) => (page.terminate(), gateway.terminate()));
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
}
