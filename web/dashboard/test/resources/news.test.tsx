import { cleanup, renderHook } from '@testing-library/react';
import type { Resource } from '@watchtide/client';
import { afterEach, describe, expect, it } from 'vitest';
import { newsOf, useNews } from '../../src/resources/useNews';

afterEach(cleanup);

describe('the news of a row', () => {
  it('is the first field that differs, unless that of the column does', () => {
    expect(newsOf({ state: 'ok', cpu: 1 }, { state: 'ok', cpu: 2 }, 'state')).toBe('cpu: 2');
    expect(newsOf({ state: 'ok', cpu: 1 }, { state: 'bad', cpu: 2 }, 'state')).toBe('');
    expect(newsOf({ a: { b: [1] } }, { a: { b: [2] } }, 'state')).toBe('a.b.0: 2');
    expect(newsOf({ note: 'x' }, {}, 'state')).toBe('note: removed');
    expect(newsOf(1, 2, 'state')).toBe('2');
    expect(newsOf({ cpu: 1 }, { cpu: 1 }, 'state')).toBeUndefined();
  });
  it('stays until another field changes', () => {
    const at = (revision: string, value: unknown) => ({ key: 'a', revision, value }) as Resource;
    const row = renderHook(({ resource }) => useNews(resource, 'state'), { initialProps: { resource: at('1', { state: 'ok', cpu: 1 }) } });
    const seen = [row.result.current];
    for (const resource of [
      at('2', { state: 'ok', cpu: 2 }),
      at('3', { state: 'ok', cpu: 2 }), // only its revision differs
      at('4', { state: 'bad', cpu: 2 }),
    ]) {
      row.rerender({ resource });
      seen.push(row.result.current);
    }
    expect(seen).toEqual(['', 'cpu: 2', 'cpu: 2', '']);
  });
});
