import { cleanup, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useStore } from '../src/gateway/tide';

const { followed } = vi.hoisted(() => ({ followed: new Set<string>() }));
vi.mock('../src/gateway/worker', () => ({ sharedWorker: () => {}, nameOf: () => '' }));
vi.mock('@watchtide/client/shared', () => ({
  watchShared: () => ({
    add: (name: string) => {
      followed.add(name);
      return { watch: name, subscribe: () => () => {} };
    },
    remove: (name: string) => followed.delete(name),
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
  expect([...followed]).toEqual(['a', 'b']);
  page.rerender({ name: 'a' });
  vi.advanceTimersByTime(10_000);
  expect(page.result.current).toMatchObject({ watch: 'a' });
  expect([...followed]).toEqual(['a']);
});

it('of many visited watches, only the last stay followed', () => {
  const page = open('w0');
  for (let i = 1; i < 30; i++) page.rerender({ name: `w${i}` });
  expect([...followed]).toEqual(['w25', 'w26', 'w27', 'w28', 'w29']);
});
