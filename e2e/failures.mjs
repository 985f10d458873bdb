// A reporter for Node's test runner: each test that failed, and why, in a line or two. The whole report stands above it, often far above.
export default async function* failures(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.details.error.failureType === 'subtestsFailed') continue;
    const { cause } = data.details.error;
    const [, where] = `${cause?.stack}`.match(/([^/\s]+\.test\.mjs:\d+)/) ?? [];
    yield `${data.name}${where ? ` (${where})` : ''}: ${cause?.message ?? cause ?? data.details.error.message}\n`;
  }
}
