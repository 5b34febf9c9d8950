// Writes a line of JSON for each test that is not a subtest: name, status, seconds.
export default async function* reporter(events) {
  for await (const { type, data } of events) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.nesting > 0) continue;
    const status = type === 'test:fail' ? 'fail' : data.skip === undefined ? 'pass' : 'skip';
    yield `${JSON.stringify({ test: data.name, status, seconds: data.details.duration_ms / 1000 })}\n`;
  }
}
