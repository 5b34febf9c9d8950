import { act, cleanup, renderHook } from '@testing-library/react';
import type { CountsView } from '@watchtide/client/counts';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useCounts, useWindow } from '../src/gateway/tide';

/** A window or counts, which a test shows. */
class Live {
  view: object = { revision: '' };
  closed = false;
  readonly #listeners = new Set<(view: object) => void>();

  constructor(readonly options: object) {}

  subscribe(run: (view: object) => void) {
    this.#listeners.add(run);
    run(this.view);
    return () => this.#listeners.delete(run);
  }

  show(total: number) {
    this.view = { revision: '1', total };
    for (const run of this.#listeners) run(this.view);
  }

  close() {
    this.closed = true;
  }
}

const { lives } = vi.hoisted(() => ({ lives: [] as Live[] }));
const live = (_: unknown, options: object) => {
  lives.push(new Live(options));
  return lives.at(-1);
};
vi.mock('../src/gateway/worker', () => ({ sharedWorker: () => {}, nameOf: () => '' }));
vi.mock('@watchtide/client/shared', () => ({ watchShared: () => ({}) }));
vi.mock('@watchtide/client/window', () => ({ watchWindow: (tide: unknown, options: object) => live(tide, options) }));
vi.mock('@watchtide/client/counts', () => ({ watchCounts: (tide: unknown, options: object) => live(tide, options) }));

beforeEach(() => {
  vi.useFakeTimers();
  lives.length = 0;
});
afterEach(() => {
  cleanup();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const pass = (ms: number) => act(() => vi.advanceTimersByTime(ms));

it('a window is followed while it is shown, and moves by itself', () => {
  const beginning = { order: 'n', limit: 5 };
  const page = renderHook(({ name, offset }: { name?: string; offset: number }) => useWindow(name, { ...beginning, offset }), {
    initialProps: { name: 'pods', offset: 0 },
  });
  expect([page.result.current, lives[0]!.options]).toEqual([lives[0], { watch: 'pods', ...beginning, offset: 0 }]);
  page.rerender({ name: 'pods', offset: 9 });
  expect([lives.length, lives[0]!.closed]).toEqual([1, false]);
  page.rerender({ offset: 0 } as { name: string; offset: number });
  expect([page.result.current, lives[0]!.closed]).toEqual([undefined, true]);
});

it('counts are shown at once, then at most four times a second, and until others are there', () => {
  const page = renderHook(({ by, filter }) => useCounts('pods', { by, filter, prefix: '' }), { initialProps: { by: 'a', filter: '' } });
  const total = () => (page.result.current as CountsView | undefined)?.total;
  expect([total(), lives[0]!.options]).toEqual([undefined, { watch: 'pods', by: 'a', filter: '', prefix: '' }]);
  lives[0]!.show(1);
  pass(0);
  expect(total()).toBe(1);
  for (let i = 2; i < 100; i++) lives[0]!.show(i);
  pass(200);
  expect(total()).toBe(1);
  pass(50);
  expect(total()).toBe(99);
  page.rerender({ by: 'a', filter: 'x' });
  expect([lives[0]!.closed, total()]).toEqual([true, 99]);
  page.rerender({ by: 'b', filter: 'x' });
  expect(total()).toBeUndefined(); // of another field
  lives[2]!.show(7);
  pass(0);
  expect(total()).toBe(7);
});

it('a count that is declared is followed by its name alone', () => {
  const page = renderHook(() => useCounts('states'));
  expect(lives[0]!.options).toEqual({ watch: 'states' });
  act(() => {
    lives[0]!.show(3);
    vi.advanceTimersByTime(0);
  });
  expect((page.result.current as CountsView | undefined)?.total).toBe(3);
});
