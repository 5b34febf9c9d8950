import { act, cleanup, renderHook } from '@testing-library/react';
import type { HistoricChange, History } from '@watchtide/protocol';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { itemsOf, matching } from '../../src/life/feed';
import { maxKept, Past } from '../../src/life/past';
import { usePast } from '../../src/life/usePast';

const change = (revision: number, more: Partial<HistoricChange> = {}): HistoricChange => ({
  type: 'upsert',
  key: 'a',
  revision: String(revision),
  value: { n: revision },
  ...more,
});

const page = (changes: readonly HistoricChange[], more: Partial<History> = {}): History => ({
  instance: 'one',
  watch: 'notes',
  position: `notes@e-${changes[0]?.revision ?? 0}`,
  revision: changes[0]?.revision ?? '0',
  complete_since: { revision: '1' },
  changes: [...changes],
  next: '',
  ...more,
});

// The answers that the gateway gives, in turn; and the queries of the requests.
let answers: Array<History | number>;
let asked: URLSearchParams[];

beforeEach(() => {
  answers = [];
  asked = [];
  vi.stubGlobal('fetch', (url: URL) => {
    asked.push(url.searchParams);
    const answer = answers.shift() ?? page([]);
    return Promise.resolve(
      typeof answer === 'number' ? new Response('no', { status: answer }) : new Response(JSON.stringify(answer), { status: 200 }),
    );
  });
});
afterEach(() => vi.unstubAllGlobals());

const revisions = (past: Past) => past.snapshot().changes.map(({ revision }) => Number(revision));

describe('the past', () => {
  it('goes on with what is newer, and back with what is older', async () => {
    const past = new Past('notes', { text: 'a' });
    answers = [page([change(9), change(8)], { next: 'older' }), page([change(11), change(10)]), page([change(7)])];
    await past.newer();
    await past.newer();
    await past.older();
    await past.older(); // there is nothing
    expect(revisions(past)).toEqual([11, 10, 9, 8, 7]);
    expect(asked.map((query) => [query.get('key'), query.get('after'), query.get('before')])).toEqual([
      ['a', null, null],
      ['a', 'notes@e-9', null],
      ['a', null, 'older'],
    ]);
    expect(past.snapshot().more).toBe(false);
  });
  it('asks for many changes of a watch, so that most have one before', async () => {
    await new Past('notes').newer();
    await new Past('notes', { text: 'a' }).newer();
    expect(asked.map((query) => query.get('limit'))).toEqual(['1000', '200']);
  });
  it('shows nothing twice that another replica repeats', async () => {
    const past = new Past('notes');
    answers = [page([change(9), change(8)]), page([change(10), change(9)])];
    await past.newer();
    await past.newer();
    expect(revisions(past)).toEqual([10, 9, 8]);
  });
  it('begins again if there is more news than one page has', async () => {
    const past = new Past('notes');
    answers = [page([change(2)]), page([change(90), change(89)], { next: 'between' })];
    await past.newer();
    await past.newer();
    expect(revisions(past)).toEqual([90, 89]);
    expect(past.snapshot().more).toBe(true);
  });
  it('begins again if the watch does', async () => {
    const past = new Past('notes');
    answers = [page([change(9)]), 410, page([change(1)])];
    await past.newer();
    await past.newer();
    expect(revisions(past)).toEqual([1]);
    expect(asked.at(-1)!.get('after')).toBeNull();
  });
  it('is complete since the latest of what was said', async () => {
    const past = new Past('notes');
    answers = [
      page([change(9)], { complete_since: { revision: '18446744073709551615' } }),
      page([], { complete_since: { revision: '9' } }),
    ];
    await past.newer();
    await past.newer();
    expect(past.snapshot().since).toEqual({ revision: '18446744073709551615' });
  });
  it('says why it cannot be read, and keeps what it has', async () => {
    const past = new Past('notes');
    answers = [page([change(9)]), 503];
    await past.newer();
    await past.newer();
    expect(past.snapshot().error).toContain('503');
    expect(revisions(past)).toEqual([9]);
  });
  it('keeps a bounded number of changes', async () => {
    const past = new Past('notes');
    for (let n = 1; n <= maxKept + 300; n += 100) {
      answers = [page(Array.from({ length: 100 }, (_, i) => change(n + 99 - i)))];
      await past.newer();
    }
    expect(past.snapshot().changes).toHaveLength(maxKept);
    expect(past.snapshot()).toMatchObject({ dropped: true, more: false });
  });
});

describe('the feed', () => {
  const changes = [change(4, { key: 'b' }), change(3), change(2, { key: 'b' }), change(1)];
  it('has the version before each change, if it was loaded', () => {
    expect(itemsOf(changes).map(({ change, before }) => [change.revision, before?.revision])).toEqual([
      ['4', '2'],
      ['3', '1'],
      ['2', undefined],
      ['1', undefined],
    ]);
  });
  it('is filtered by words of the key, the kind and the value', () => {
    const items = itemsOf([change(5, { type: 'delete', key: 'Bee', value: undefined }), ...changes]);
    const found = (text: string) => matching(items, text).map(({ change }) => change.revision);
    expect(found('bee DELETE')).toEqual(['5']);
    expect(found('n: 3')).toEqual(['3']);
    expect(found('  ')).toHaveLength(5);
  });
});

describe('the past that a page follows', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
  });
  const passes = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

  it('is loaded again after a failure, although there is no news', async () => {
    answers = [503, 503, page([change(9)])];
    const { result } = renderHook(() => usePast('notes', 'e 9', false));
    await passes(0);
    expect(result.current.error).not.toBe('');
    await passes(1000);
    expect(asked).toHaveLength(2);
    await passes(2000);
    expect(result.current).toMatchObject({ error: '', failures: 0, changes: [{ revision: '9' }] });
    await passes(600_000);
    expect(asked).toHaveLength(3);
  });
  it('is not loaded again while it is paused, and once nobody follows it', async () => {
    answers = [503, 503];
    const { rerender, unmount } = renderHook(({ paused }) => usePast('notes', 'e 9', paused), { initialProps: { paused: false } });
    await passes(0);
    rerender({ paused: true });
    await passes(600_000);
    expect(asked).toHaveLength(1);
    rerender({ paused: false });
    await passes(0);
    unmount();
    await passes(600_000);
    expect(asked).toHaveLength(2);
  });
  it.each([403, 404])('shows nothing that was loaded before once it is refused with %i', async (status) => {
    answers = [page([change(9)]), status, page([change(10)])];
    const { result, rerender } = renderHook(({ news }) => usePast('notes', news, false), { initialProps: { news: 'e 9' } });
    await passes(0);
    expect(result.current.changes).toHaveLength(1);
    rerender({ news: 'e 10' });
    await passes(0);
    expect(result.current.changes).toEqual([]);
    await passes(1000);
    expect(result.current).toMatchObject({ error: '', changes: [{ revision: '10' }] });
    expect(asked.at(-1)!.has('after')).toBe(false);
  });
});
