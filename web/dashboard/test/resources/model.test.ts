// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LoadedModel } from '../../src/resources/model';
import { parseSort } from '../../src/resources/order';
import { fadeMs } from '../../src/resources/rows';
import { Source } from './source';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const frame = () => vi.advanceTimersToNextFrame();

function follow(source: Source) {
  const model = new LoadedModel(source.store);
  const stop = model.follow();
  const told = vi.fn();
  model.subscribe(told);
  frame();
  told.mockClear();
  return { model, stop, told };
}

const shown = (model: LoadedModel) => model.rows.shown.map(({ key, resource }) => `${key}=${String(resource.value)}`).join(' ');

describe('a model', () => {
  it('shows all changes since the last frame at once', () => {
    const source = new Source();
    const { model, told } = follow(source);
    source.snapshot(1, { a: 1, b: 2 });
    for (let i = 2; i < 50; i++) source.change(i, { a: i });
    expect(told).not.toHaveBeenCalled();
    frame();
    expect(told).toHaveBeenCalledTimes(1);
    expect(shown(model)).toBe('a=49 b=2');
    expect(model.status).toMatchObject({ state: 'in_sync', revision: '49', total: 2, matching: 2 });
  });

  it('changes its state together with the rows', () => {
    const source = new Source();
    const { model } = follow(source);
    source.become('priming');
    frame();
    expect(model.status).toMatchObject({ state: 'priming', total: 0 });
    source.snapshot(7, { a: 1 });
    expect(model.status).toMatchObject({ state: 'priming', total: 0, revision: '' });
    frame();
    expect(model.status).toMatchObject({ state: 'in_sync', total: 1, revision: '7' });
  });

  it('reports at once that it may be stale, and keeps its rows', () => {
    const source = new Source();
    const { model } = follow(source);
    source.snapshot(1, { a: 1 });
    source.become('offline');
    frame();
    expect(model.status).toMatchObject({ state: 'offline', revision: '1', total: 1 });
  });

  it('shows what the store already has', () => {
    const source = new Source();
    follow(source).stop();
    source.snapshot(3, { a: 1 });
    const { model } = follow(source);
    expect(shown(model)).toBe('a=1');
    expect(model.status).toMatchObject({ state: 'in_sync', revision: '3' });
  });

  it('does not count what the store already has as changes', () => {
    const source = new Source();
    source.snapshot(3, { a: 1, b: 1 });
    const { model } = follow(source);
    expect(model.changes).toBe(0);
    source.change(4, { a: 2 });
    expect(model.changes).toBe(1);
  });

  it('does not change while it is paused, and catches up', () => {
    const source = new Source();
    const { model } = follow(source);
    source.snapshot(1, { a: 1, b: 1 });
    frame();
    model.pause();
    source.change(2, { a: 2 });
    source.change(3, { b: undefined, c: 3 });
    frame();
    expect(shown(model)).toBe('a=1 b=1');
    expect(model.status).toMatchObject({ revision: '1', total: 2, waiting: 3 });
    model.resume();
    frame();
    expect(shown(model)).toBe('a=2 c=3');
    expect(model.status).toMatchObject({ revision: '3', waiting: 0, paused: 0 });
  });

  it('continues step by step while it is paused', () => {
    const source = new Source();
    const { model } = follow(source);
    source.snapshot(1, { a: 1 });
    frame();
    model.pause();
    source.change(2, { a: 2 });
    source.change(3, { a: 3, b: 3 });
    frame();
    model.step();
    expect([shown(model), model.status.revision, model.status.waiting]).toEqual(['a=2', '2', 2]);
    model.step();
    expect([shown(model), model.status.revision, model.status.waiting]).toEqual(['a=3 b=3', '3', 0]);
    model.step();
    expect(model.status.revision).toBe('3');
  });

  it('can be sorted while it is paused, without showing anything newer', () => {
    const source = new Source();
    const { model } = follow(source);
    source.snapshot(1, { a: 1, b: 2 });
    frame();
    model.pause();
    source.change(2, { a: 9 });
    model.arrange({ sort: parseSort('-value'), filter: undefined });
    frame();
    expect(shown(model)).toBe('b=2 a=1');
  });

  it('fades a deleted row that was on the screen', () => {
    const source = new Source();
    const { model } = follow(source);
    source.snapshot(1, { a: 1, b: 1 });
    frame();
    model.visible = new Set(['a']);
    source.change(2, { a: undefined });
    frame();
    expect(shown(model)).toBe('a=1 b=1');
    expect(model.status).toMatchObject({ total: 1, matching: 1 });
    vi.advanceTimersByTime(fadeMs + 50);
    expect(shown(model)).toBe('b=1');
  });

  it('has a consistent status while many rows are sorted in slices', async () => {
    vi.useRealTimers(); // a slice ends by the clock
    const source = new Source();
    const model = new LoadedModel(source.store);
    const stop = model.follow();
    source.snapshot(1, Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`k${(i * 7919) % 50_000}`, i])));
    const seen: string[] = [];
    await new Promise<void>((done) => {
      let changed = false;
      model.subscribe(() => {
        const { state, revision, total, arranging } = model.status;
        seen.push(`${state} ${revision} ${total}`);
        if (arranging && !changed) source.change(2, { more: 1 });
        changed ||= arranging;
        if (revision === '2') done();
      });
    });
    stop();
    expect([...new Set(seen)]).toEqual(['priming  0', 'in_sync 1 50000', 'in_sync 2 50001']);
  });

  it('does nothing once it is no longer followed', () => {
    const source = new Source();
    const { model, stop, told } = follow(source);
    source.snapshot(1, { a: 1 });
    stop();
    vi.runAllTimers();
    expect(told).not.toHaveBeenCalled();
    expect(model.status.total).toBe(0);
  });
});
