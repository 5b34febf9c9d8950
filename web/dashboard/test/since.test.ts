import { expect, test } from 'vitest';
import { sinceOf } from '../src/gateway/since';

const seen = 5_000;

test.each([
  ['what the watch says of the state that it is in', { state: 'in_sync', since: '1970-01-01T00:00:01Z' }, 1_000],
  ['what the page has seen, if the watch is in another state', { state: 'stale', since: '1970-01-01T00:00:01Z' }, seen],
  ['what the page has seen, if the watch does not say it', { state: 'in_sync' }, seen],
  ['what the page has seen, if nothing is known of the watch', undefined, seen],
] as const)('since when: %s', (_, watch, want) => {
  expect(sinceOf(watch as Parameters<typeof sinceOf>[0], 'in_sync', seen)).toBe(want);
});
