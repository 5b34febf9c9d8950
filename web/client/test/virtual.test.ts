import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Resource } from '../src/resource.js';
import { virtual } from '../src/virtual.js';
import type { LiveWindow, Move, WindowView } from '../src/window.js';

/** A window of so many resources, whose moves are complete when the test says so. */
class List implements LiveWindow<number> {
  readonly moves: number[] = [];
  #offset = 0;
  view: WindowView<number> = {
    ...{ state: 'connecting', since: 0, reason: '', revision: '', next: '' },
    ...{ rows: [], total: 0, before: 0, moving: false },
  };

  constructor(
    public total: number,
    private readonly limit: number,
  ) {}

  move({ offset = 0 }: Move): void {
    this.moves.push(offset);
    this.#offset = offset;
    this.view = { ...this.view, moving: true };
  }

  answer(): void {
    const before = Math.min(this.#offset, this.total);
    const rows = Array.from({ length: Math.min(this.limit, this.total - before) }, (_, i): Resource<number> => {
      return { key: `${before + i}`, revision: '1', value: before + i };
    });
    this.view = { ...this.view, state: 'in_sync', revision: '1', rows, before, total: this.total, moving: false };
  }

  subscribe(): () => void {
    return () => {};
  }

  close(): void {}
}

const places = (first: number, last: number) => Array.from({ length: last - first }, (_, i) => first + i);

describe('a virtual list', () => {
  test('moves its window before the screen comes to its end, and one move after the other', () => {
    const list = new List(10_000, 256);
    const look = virtual(list, 256);
    const values = (first: number) => look(first, first + 40).rows.map(({ value }) => value);
    expect(look(0, 40)).toEqual({ rows: [], loaded: false });
    expect(list.moves).toEqual([]); // it is where it begins
    list.answer();
    expect(look(0, 40)).toMatchObject({ loaded: true });
    expect(values(100)).toEqual(places(100, 140));
    expect(list.moves).toEqual([]);
    expect(values(180)).toEqual(places(180, 220));
    expect(list.moves).toEqual([64]);
    expect(values(5_000)).toEqual(places(216, 256)); // the last ones that there are, and no hole
    expect(look(7_000, 7_040).loaded).toBe(false);
    expect(list.moves).toEqual([64]);
    list.answer();
    expect(values(9_960)).toEqual(places(280, 320));
    expect(list.moves).toEqual([64, 9_824]); // those between are not asked for
    list.answer();
    expect(values(9_960)).toEqual(places(9_960, 10_000));
    expect(look(9_960, 10_000).loaded).toBe(true);
    expect(list.moves).toHaveLength(2);
  });

  test('ends before the screen does, and each row is at its place', () => {
    const list = new List(1_000, 256);
    const look = virtual(list, 256);
    list.answer();
    look(970, 1_010);
    list.answer();
    expect(look(970, 1_010).rows.map(({ value }) => value)).toEqual(places(970, 1_000));
    expect(look(970, 1_010).loaded).toBe(true);
  });

  test('that is shorter than the screen is loaded', () => {
    const list = new List(3, 256);
    const look = virtual(list, 256);
    list.answer();
    expect(look(0, 40)).toMatchObject({ loaded: true, rows: [{ value: 0 }, { value: 1 }, { value: 2 }] });
    expect(list.moves).toEqual([]);
  });

  test('has all rows of the screen in the end, and never fewer than there is room for', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3_000 }),
        fc.integer({ min: 1, max: 120 }),
        fc.array(fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.constant('answer' as const)), { maxLength: 20 }),
        (total, height, steps) => {
          const list = new List(total, 256);
          const look = virtual(list, 256);
          list.answer();
          let first = 0;
          const last = () => Math.min(total, first + height);
          for (const step of steps) {
            if (step === 'answer') list.answer();
            else first = Math.min(step, Math.max(0, total - height));
            expect(look(first, last()).rows).toHaveLength(last() - first);
          }
          for (let i = 0; i < 3; i++) {
            look(first, last());
            if (list.view.moving) list.answer();
          }
          const { rows, loaded } = look(first, last());
          expect(rows.map(({ value }) => value)).toEqual(places(first, last()));
          expect([loaded, list.view.moving]).toEqual([true, false]);
        },
      ),
    );
  });
});
