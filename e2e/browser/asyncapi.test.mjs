// The contract for machines, read by the parser of those who wrote the format.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Parser } from '@asyncapi/parser';

test('protocol/asyncapi.yaml is AsyncAPI without errors', async () => {
  const text = await readFile(new URL('../../protocol/asyncapi.yaml', import.meta.url), 'utf8');
  const { document, diagnostics } = await new Parser().parse(text);
  const errors = diagnostics.filter(({ severity }) => severity === 0);
  assert.deepEqual(errors.map(({ path, message }) => `${path.join('.')}: ${message}`), []);
  assert.ok(document, 'it was not read');
  const types = document.messages().all().map((message) => message.payload().property('type')?.const());
  for (const type of ['session.start', 'mocked.turn.trigger', 'input_audio.append', 'input_audio.commit', 'response.cancel']) {
    assert.ok(types.includes(type), `${type} is missing from ${types}`);
  }
});
