// A receiver of webhooks as an application would write one, with nothing of ours: it checks each request as Standard
// Webhooks 1.0.0 says and prints the signal of each that is good. The first request it refuses with 500, so that it comes again.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const key = Buffer.from(process.env.SECRET.replace(/^whsec_/, ''), 'base64');
let requests = 0;

function verified({ headers }, body) {
  const [id, at, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name]);
  if (!id || !at || !signatures || Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const want = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest();
  return signatures.split(' ').some((signature) => {
    const [version, value] = signature.split(',');
    const got = Buffer.from(value ?? '', 'base64');
    return version === 'v1' && got.length === want.length && timingSafeEqual(got, want);
  });
}

const server = createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces);
    const good = verified(request, body);
    const first = ++requests === 1;
    response.statusCode = good ? (first ? 500 : 204) : 401;
    response.end();
    console.log(good ? `${request.headers['webhook-id']} ${first ? 'again please' : body}` : 'refused');
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => server.close(() => process.exit(0)));
