import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WindowArrangement } from '../../src/resources/table';
import { orderOf, sortsByGateway, WindowModel, windowLimit } from '../../src/resources/windowModel';
import { resources, WindowSource } from './windowSource';

const byKey: WindowArrangement = { sort: { column: 'key', descending: false }, filter: '', prefix: '' };
const all = resources(10_000);

let live: WindowSource;
let model: WindowModel;
let end: () => void;

const frame = () => vi.advanceTimersByTime(20);
const drawn = (first: number, last: number) => model.rows.slice(first, last).map(({ key }) => Number(key.slice(1)));

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => Number(setTimeout(draw, 16)));
  vi.stubGlobal('cancelAnimationFrame', clearTimeout);
  live = new WindowSource({});
  model = new WindowModel(live, byKey);
  end = model.follow();
  live.answer(all);
  frame();
});
afterEach(() => {
  end();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('orders of the gateway', () => {
  it.each([
    ['n', false, '"n"'],
    ['a.b', true, '-"a"."b"'],
    ['a\\.b', false, '"a.b"'],
    ['\\-a', true, '-"-a"'],
    ['a\\,b', false, '"a,b"'],
    ['key', true, '"\\u0000"'],
    ['\\key', false, '"key"'],
  ])('of %s, descending: %s', (column, descending, order) => {
    expect(orderOf({ column, descending })).toBe(order);
  });

  it('are of fields and of keys', () => {
    expect(['key', 'revision', 'value', 'n', '\\value'].map((column) => sortsByGateway({ column, descending: false }))).toEqual([
      true,
      false,
      false,
      true,
      true,
    ]);
  });
});

describe('a table that works on a window', () => {
  it('has places for all rows, and the first ones', () => {
    expect(live.options).toMatchObject({ order: '"\\u0000"', offset: 0, limit: windowLimit });
    expect(model.rows).toMatchObject({ length: 10_000, total: 10_000, matching: 10_000 });
    expect(model.status).toMatchObject({ state: 'in_sync', revision: '5', arranging: false });
    expect(drawn(0, 3)).toEqual([0, 1, 2]);
    expect([model.rows.indexOf('k000007'), model.rows.at(7)?.key, model.rows.get('k000007')?.key]).toEqual([7, 'k000007', 'k000007']);
    expect([model.rows.indexOf('k009999'), model.rows.at(9_999)]).toEqual([-1, undefined]);
  });

  it('moves the window before the screen comes to its end, and not for a few rows', () => {
    model.look(20, 60);
    expect(live.moves.slice(1)).toEqual([]);
    model.look(180, 220);
    expect(live.moves.slice(1)).toEqual([{ offset: 64 }]);
    live.answer();
    frame();
    expect(drawn(180, 182)).toEqual([180, 181]);
    model.look(190, 230);
    expect(live.moves).toHaveLength(2);
  });

  it('shows the old rows until those of another place are there, one move after the other', () => {
    model.look(5_000, 5_040);
    expect(drawn(5_000, 5_040)).toHaveLength(40);
    model.look(8_000, 8_040);
    model.look(9_960, 10_000);
    expect(live.moves.slice(1)).toEqual([{ offset: 4_864 }]); // those between are not asked for
    live.answer();
    frame();
    expect(live.moves.slice(2)).toEqual([{ offset: 9_824 }]);
    expect(drawn(9_960, 10_000)).toHaveLength(40);
    live.answer();
    frame();
    expect(drawn(9_960, 10_000)).toEqual(Array.from({ length: 40 }, (_, i) => 9_960 + i));
    expect(live.moves).toHaveLength(3);
  });

  it('wherever it is scrolled to, has all rows of the screen in the end', () => {
    for (const first of [0, 31, 100, 255, 256, 257, 4_999, 9_000, 9_880, 9_960, 12, 0]) {
      model.look(first, first + 40);
      for (let i = 0; i < 3; i++) {
        if (live.view.moving) live.answer();
        frame();
      }
      expect(drawn(first, first + 40)).toEqual(Array.from({ length: 40 }, (_, i) => first + i));
    }
  });

  it('is sorted and filtered by the gateway, from the first row on, and keeps its rows until then', () => {
    model.look(5_000, 5_040);
    live.answer();
    frame();
    model.arrange({ sort: { column: 'n', descending: true }, filter: 'value.n > 1', prefix: 'k' });
    expect(live.moves.at(-1)).toMatchObject({ order: '-"n"', filter: 'value.n > 1', prefix: 'k', offset: 0 });
    expect(model.status).toMatchObject({ arranging: true, state: 'stale' });
    model.look(0, 40);
    expect(drawn(0, 2)).toEqual([4_864, 4_865]);
    live.answer(resources(300, 'x'));
    frame();
    expect(model.status).toMatchObject({ arranging: false, state: 'in_sync', total: 300 });
    expect(model.rows.at(0)?.key).toBe('x000000');
    expect(model.rows.sample(5_000).every(({ key }) => key.startsWith('x'))).toBe(true);
    const { length } = live.moves;
    model.arrange({ sort: { column: 'n', descending: true }, filter: 'value.n > 1', prefix: 'k' });
    expect(live.moves).toHaveLength(length);
  });

  it('sorted by key in descending order counts from the end', () => {
    model.arrange({ ...byKey, sort: { column: 'key', descending: true } });
    model.look(0, 40);
    live.answer();
    frame();
    expect(live.moves.at(-1)).toEqual({ offset: 9_824 });
    live.answer();
    frame();
    expect(drawn(0, 3)).toEqual([9_999, 9_998, 9_997]);
    expect(model.rows.indexOf('k009999')).toBe(0);
    model.look(9_960, 10_000);
    live.answer();
    frame();
    expect(drawn(9_998, 10_000)).toEqual([1, 0]);
  });

  it('is reversed at once where that takes no other window', () => {
    live.answer(resources(10));
    frame();
    const { length } = live.moves;
    model.arrange({ ...byKey, sort: { column: 'key', descending: true } });
    expect(drawn(0, 10)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(model.status).toMatchObject({ arranging: false, state: 'in_sync' });
    expect(live.moves).toHaveLength(length);
  });

  it('counts changes, and those that wait while it is paused', () => {
    model.pause();
    const changed = all.map((resource, i) => (i < 3 ? { ...resource, value: { n: -1 } } : resource));
    live.answer(changed);
    frame();
    expect(model.changes).toBe(3);
    expect(model.status.waiting).toBe(3);
    expect(model.rows.at(0)?.resource).toBe(all[0]);
    model.look(5_000, 5_040); // the user looks elsewhere
    live.answer();
    frame();
    expect(drawn(5_000, 5_001)).toEqual([5_000]);
    model.resume();
    expect(model.status).toMatchObject({ waiting: 0, paused: 0 });
    expect(model.changes).toBe(3);
  });

  it('keeps rows that are unchanged', () => {
    const before = model.rows.at(1);
    live.answer(all.map((resource, i) => (i === 0 ? { ...resource, value: 0 } : resource)));
    frame();
    expect(model.rows.at(0)?.resource.value).toBe(0);
    expect(model.rows.at(1)).toBe(before);
  });

  it('has as many places as rows, although the total comes later', () => {
    live.answer(all.slice(0, 10), 7);
    frame();
    expect(model.rows.length).toBe(10);
  });

  it('tells its listeners of a lost connection', () => {
    const seen: string[] = [];
    model.subscribe(() => seen.push(model.status.view.state));
    live.close();
    frame();
    expect(seen).toEqual(['closed']);
  });
});
