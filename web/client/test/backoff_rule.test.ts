import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { Backoff } from '../src/backoff.js';

afterEach(() => {
  vi.restoreAllMocks();
});

test('has the rule of the client in Go', () => {
  const file = new URL('../../../client/testdata/waits.json', import.meta.url);
  const connections: { lasted: number; goodbye?: string; asked: number; draw: number; wait: number }[] = JSON.parse(
    readFileSync(file, 'utf8'),
  );
  expect(connections.length).toBeGreaterThan(9);
  const backoff = new Backoff();
  for (const { lasted, goodbye, asked, draw, wait } of connections) {
    vi.spyOn(Math, 'random').mockReturnValue(draw);
    expect(backoff.ended({ lastedMs: lasted, goodbye, askedMs: asked })).toBe(wait);
  }
});
