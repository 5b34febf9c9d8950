import type { Watch } from '@watchtide/protocol';
import { describe, expect, it } from 'vitest';
import { byNeed, verdictOf } from '../src/health/fresh';

const watch = (name: string, state: string, since?: string, connected = true) =>
  ({ name, state, ...(since && { since }), upstream: { connected, attempts: 0 } }) as Watch;

describe('the verdict', () => {
  it('is in sync since the last one came in sync', () => {
    const all = [watch('a', 'in_sync', '2026-01-02T05:00:00+02:00'), watch('b', 'in_sync', '2026-01-02T04:00:00Z')];
    expect(verdictOf(all)).toEqual({ late: [], since: '2026-01-02T04:00:00Z' });
  });
  it('is late since the first one is not', () => {
    const late = [watch('a', 'stale', '2026-01-02T05:00:00Z'), watch('b', 'priming', '2026-01-02T04:00:00Z')];
    expect(verdictOf([watch('c', 'in_sync', '2026-01-02T01:00:00Z'), ...late])).toEqual({ late, since: '2026-01-02T04:00:00Z' });
    expect(verdictOf([watch('a', 'priming')]).since).toBeUndefined();
  });
});

it('what needs attention comes first', () => {
  const all = [watch('a', 'in_sync'), watch('b', 'in_sync', '', false), watch('c', 'stale'), watch('d', 'in_sync')];
  expect(byNeed(all).map(({ name }) => name)).toEqual(['c', 'b', 'a', 'd']);
});
