import { describe, expect, it } from 'vitest';
import { brief } from '../../src/resources/brief';
import { linesOf } from '../../src/resources/lines';

const none = { open: new Map<string, boolean>(), whole: new Set<string>() };

describe('the lines of a value', () => {
  it('are its members, and those of open members', () => {
    const lines = linesOf({ a: { b: 1 }, c: [], d: 'x' }, none);
    expect(lines.map(({ name, level, members, position, siblings }) => [name, level, members, position, siblings])).toEqual([
      ['a', 1, 1, 1, 3],
      ['b', 2, undefined, 1, 1],
      ['c', 1, undefined, 2, 3],
      ['d', 1, undefined, 3, 3],
    ]);
    const folded = linesOf({ a: { b: 1 } }, { ...none, open: new Map([[lines[0]!.id, false]]) });
    expect(folded.map(({ name }) => name)).toEqual(['a']);
  });

  it('is a single one without members', () => {
    expect(linesOf('text', none)).toMatchObject([{ name: undefined, value: 'text' }]);
    expect(linesOf({ '': 'text' }, none)).toMatchObject([{ name: '', value: 'text' }]);
  });

  it('are bounded until more are requested', () => {
    const value = { list: Array.from({ length: 250 }, (_, i) => i), twin: 0 };
    const [list] = linesOf(value, none);
    expect(list).toMatchObject({ open: false, members: 250 });
    const open = new Map([[list!.id, true]]);
    const lines = linesOf(value, { ...none, open });
    expect(lines).toHaveLength(1 + 100 + 1 + 1);
    expect(lines[101]).toMatchObject({ more: 150, parent: list!.id });
    expect(linesOf(value, { open, whole: new Set([list!.id]) })).toHaveLength(1 + 250 + 1);
  });

  it('unfold a long text', () => {
    const value = { text: 'x'.repeat(5000) };
    const [folded] = linesOf(value, none);
    expect(folded).toMatchObject({ open: false, members: undefined });
    expect(linesOf(value, { ...none, open: new Map([[folded!.id, true]]) })).toMatchObject([{ open: true }]);
  });

  it('have distinct ids if names contain dots', () => {
    const lines = linesOf({ 'a.b': 1, a: { b: 2 } }, none);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
  });
});

describe('a value in brief', () => {
  it.each([
    ['text', 'text'],
    [1.5, '1.5'],
    [18446744073709551615n, '18446744073709551615'],
    [null, 'null'],
    [undefined, ''],
    [{ a: [1, 'x'], b: {} }, '{a: [1, "x"], b: {}}'],
  ])('is, for %o, %s', (value, text) => {
    expect(brief(value)).toBe(text);
  });
  it('ends at its limit, however large the value', () => {
    expect(brief('x'.repeat(1e6), 20)).toHaveLength(20);
    expect(
      brief(
        Array.from({ length: 1e5 }, () => ({ a: 'x'.repeat(100) })),
        50,
      ),
    ).toHaveLength(50);
  });
});
