// A model that says and calls what a test wants, as OpenAI's chat completions.
import { once } from 'node:events';
import http from 'node:http';

/**
 * Starts it. `answer` gets the messages of a request, and `ended()`, which says whether anybody still listens; it yields texts and tool calls
 * ({name, arguments}).
 */
export async function startModel(answer) {
  let calls = 0;
  const asked = [];
  const server = http.createServer(async (req, res) => {
    if (req.method === 'GET') return res.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[{"id":"m","object":"model"}]}');
    let body = '';
    for await (const more of req.setEncoding('utf8')) body += more;
    const { messages } = JSON.parse(body);
    asked.push(messages);
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const event = (delta, finish_reason = null) =>
      res.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    let index = 0;
    for await (const part of answer(messages, () => res.destroyed)) {
      if (res.destroyed) return;
      if (typeof part === 'string') event({ content: part });
      else event({ tool_calls: [{ index: index++, id: `call${++calls}`, type: 'function', function: { name: part.name, arguments: JSON.stringify(part.arguments) } }] });
    }
    event({}, index > 0 ? 'tool_calls' : 'stop');
    res.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    asked,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What the user said last. */
export const lastSaid = (messages) => String(messages.findLast((m) => m.role === 'user')?.content ?? '');

/** How many tools have answered since. */
export const toolsSince = (messages) => messages.length - 1 - messages.findLastIndex((m) => m.role !== 'tool');
