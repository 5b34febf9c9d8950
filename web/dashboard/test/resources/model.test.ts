import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fadeMs } from '../../src/resources/rows';
import { Sheet } from '../../src/resources/model';
import { parseSort } from '../../src/resources/order';
import { Source } from './source';

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

const frame = () => vi.advanceTimersToNextFrame();

function follow(source: Source) {
  const sheet = new Sheet(source.store);
  const stop = sheet.follow();
  const told = vi.fn();
  sheet.subscribe(told);
  frame();
  told.mockClear();
  return { sheet, stop, told };
}

const shown = (sheet: Sheet) => sheet.rows.shown.map(({ key, resource }) => `${key}=${String(resource.value)}`).join(' ');

describe('a sheet', () => {
  it('shows all that came since the last frame at once', () => {
    const source = new Source();
    const { sheet, told } = follow(source);
    source.snapshot(1, { a: 1, b: 2 });
    for (let i = 2; i < 50; i++) source.change(i, { a: i });
    expect(told).not.toHaveBeenCalled();
    frame();
    expect(told).toHaveBeenCalledTimes(1);
    expect(shown(sheet)).toBe('a=49 b=2');
    expect(sheet.look).toMatchObject({ state: 'in_sync', revision: '49', total: 2, matching: 2 });
  });

  it('says a state together with the rows that it is about', () => {
    const source = new Source();
    const { sheet } = follow(source);
    source.become('priming');
    frame();
    expect(sheet.look).toMatchObject({ state: 'priming', total: 0 });
    source.snapshot(7, { a: 1 });
    expect(sheet.look).toMatchObject({ state: 'priming', total: 0, revision: '' });
    frame();
    expect(sheet.look).toMatchObject({ state: 'in_sync', total: 1, revision: '7' });
  });

  it('tells at once that it may be stale, and keeps what it shows', () => {
    const source = new Source();
    const { sheet } = follow(source);
    source.snapshot(1, { a: 1 });
    source.become('offline');
    frame();
    expect(sheet.look).toMatchObject({ state: 'offline', revision: '1', total: 1 });
  });

  it('shows what a store held before', () => {
    const source = new Source();
    follow(source).stop();
    source.snapshot(3, { a: 1 });
    const { sheet } = follow(source);
    expect(shown(sheet)).toBe('a=1');
    expect(sheet.look).toMatchObject({ state: 'in_sync', revision: '3' });
  });

  it('stands still while it is paused, and catches up', () => {
    const source = new Source();
    const { sheet } = follow(source);
    source.snapshot(1, { a: 1, b: 1 });
    frame();
    sheet.pause();
    source.change(2, { a: 2 });
    source.change(3, { b: undefined, c: 3 });
    frame();
    expect(shown(sheet)).toBe('a=1 b=1');
    expect(sheet.look).toMatchObject({ revision: '1', total: 2, waiting: 3 });
    sheet.resume();
    frame();
    expect(shown(sheet)).toBe('a=2 c=3');
    expect(sheet.look).toMatchObject({ revision: '3', waiting: 0, paused: 0 });
  });

  it('goes on step by step while it is paused', () => {
    const source = new Source();
    const { sheet } = follow(source);
    source.snapshot(1, { a: 1 });
    frame();
    sheet.pause();
    source.change(2, { a: 2 });
    source.change(3, { a: 3, b: 3 });
    frame();
    sheet.step();
    expect([shown(sheet), sheet.look.revision, sheet.look.waiting]).toEqual(['a=2', '2', 2]);
    sheet.step();
    expect([shown(sheet), sheet.look.revision, sheet.look.waiting]).toEqual(['a=3 b=3', '3', 0]);
    sheet.step();
    expect(sheet.look.revision).toBe('3');
  });

  it('can be sorted while it is paused, without showing anything newer', () => {
    const source = new Source();
    const { sheet } = follow(source);
    source.snapshot(1, { a: 1, b: 2 });
    frame();
    sheet.pause();
    source.change(2, { a: 9 });
    sheet.arrange({ sort: parseSort('-value'), filter: undefined });
    frame();
    expect(shown(sheet)).toBe('b=2 a=1');
  });

  it('lets a row that was on the screen fade', () => {
    const source = new Source();
    const { sheet } = follow(source);
    source.snapshot(1, { a: 1, b: 1 });
    frame();
    sheet.visible = new Set(['a']);
    source.change(2, { a: undefined });
    frame();
    expect(shown(sheet)).toBe('a=1 b=1');
    expect(sheet.look).toMatchObject({ total: 1, matching: 1 });
    vi.advanceTimersByTime(fadeMs + 50);
    expect(shown(sheet)).toBe('b=1');
  });

  it('has in one look what is of one moment, while many rows are sorted in slices', async () => {
    vi.useRealTimers(); // a slice ends by the clock
    const source = new Source();
    const sheet = new Sheet(source.store);
    const stop = sheet.follow();
    source.snapshot(1, Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`k${(i * 7919) % 50_000}`, i])));
    const seen: string[] = [];
    await new Promise<void>((done) => {
      let changed = false;
      sheet.subscribe(() => {
        const { state, revision, total, arranging } = sheet.look;
        seen.push(`${state} ${revision} ${total}`);
        if (arranging && !changed) source.change(2, { more: 1 });
        changed ||= arranging;
        if (revision === '2') done();
      });
    });
    stop();
    expect([...new Set(seen)]).toEqual(['priming  0', 'in_sync 1 50000', 'in_sync 2 50001']);
  });

  it('is quiet once nobody looks', () => {
    const source = new Source();
    const { sheet, stop, told } = follow(source);
    source.snapshot(1, { a: 1 });
    stop();
    vi.runAllTimers();
    expect(told).not.toHaveBeenCalled();
    expect(sheet.look.total).toBe(0);
  });
});
