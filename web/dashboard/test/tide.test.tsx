import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useStore } from '../src/gateway/tide';
import { useWatches } from '../src/gateway/watches';

interface Fake {
  added: number;
}
const { followed, hurry } = vi.hoisted(() => ({ followed: new Map<string, Fake>(), hurry: vi.fn() }));
vi.mock('../src/gateway/worker', () => ({ sharedWorker: () => {}, nameOf: () => '' }));
vi.mock('@watchtide/client/shared', () => ({
  watchShared: () => ({
    add: (name: string) => {
      const store = followed.get(name) ?? { watch: name, view: {}, subscribe: () => () => {}, added: 0 };
      store.added++;
      followed.set(name, store);
      return store;
    },
    store: (name: string) => followed.get(name),
    remove: (name: string) => followed.delete(name),
    hurry,
  }),
}));

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.runAllTimers(); // for watches that stay followed
  vi.useRealTimers();
  expect(followed.size).toBe(0);
});

const open = (watch: string) => renderHook(({ name }) => useStore(name), { initialProps: { name: watch } });

it('a watch stays followed for a moment, in case the user comes back', () => {
  const page = open('a');
  page.rerender({ name: 'b' });
  vi.advanceTimersByTime(9_999);
  expect([...followed.keys()]).toEqual(['a', 'b']);
  page.rerender({ name: 'a' });
  vi.advanceTimersByTime(10_000);
  expect(page.result.current).toMatchObject({ watch: 'a' });
  expect([...followed.keys()]).toEqual(['a']);
});

it('of many visited watches, only the last stay followed', () => {
  const page = open('w0');
  for (let i = 1; i < 30; i++) page.rerender({ name: `w${i}` });
  expect([...followed.keys()]).toEqual(['w25', 'w26', 'w27', 'w28', 'w29']);
});

it('a poll that succeeds makes a lost connection hurry, and one that fails does not', async () => {
  open('a');
  const answer = vi.fn<() => Promise<Response>>().mockImplementation(async () => new Response('', { status: 503 }));
  vi.stubGlobal('fetch', answer);
  const polling = renderHook(() => useWatches());
  await act(() => vi.advanceTimersByTimeAsync(1_500));
  expect(answer).toHaveBeenCalled();
  expect(hurry).not.toHaveBeenCalled();
  answer.mockImplementation(async () => Response.json({ instance: 'i', watches: [] }));
  await act(() => vi.advanceTimersByTimeAsync(3_000));
  expect(hurry.mock.calls.length).toBeGreaterThan(1);
  polling.unmount();
  vi.unstubAllGlobals();
});
