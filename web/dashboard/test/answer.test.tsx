import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useAnswer } from '../src/gateway/answer';

let answers: Map<string, () => Promise<Response>>;

beforeEach(() => {
  vi.useFakeTimers();
  answers = new Map();
  vi.stubGlobal('fetch', ({ pathname }: URL) => answers.get(pathname)?.() ?? new Promise<Response>(() => {}));
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const passes = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

it('is never that of another path', async () => {
  answers.set('/a', () => Promise.resolve(Response.json('of a')));
  const seen: unknown[] = [];
  const { rerender } = renderHook(({ path }) => void seen.push([path, useAnswer<string>(path, 1000).data]), {
    initialProps: { path: 'a' },
  });
  await passes(0);
  expect(seen.at(-1)).toEqual(['a', 'of a']);
  seen.length = 0;
  rerender({ path: 'b' });
  await passes(5000);
  expect(new Set(seen.map((one) => JSON.stringify(one)))).toEqual(new Set(['["b",null]']));
  rerender({ path: '' });
  expect(seen.at(-1)).toEqual(['', undefined]);
});

it('says that something else has answered in place of the gateway', async () => {
  answers.set('/a', () => Promise.resolve(new Response('<html>Sign in</html>')));
  const { result } = renderHook(() => useAnswer('a', 1000));
  await passes(0);
  expect(result.current).toMatchObject({ data: undefined, error: 'something else has answered in its place', status: 0 });
});
