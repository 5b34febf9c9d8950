import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Difference, diff } from '../../src/resources/diff';

describe('the difference of two values', () => {
  it('names the innermost fields', () => {
    expect(diff({ a: 1, b: { c: [1, 2], d: 0 } }, { a: 1, b: { c: [1, 3, 4] } })).toEqual([
      { path: ['b', 'c', '1'], before: 2, after: 3 },
      { path: ['b', 'c', '2'], before: undefined, after: 4 },
      { path: ['b', 'd'], before: 0, after: undefined },
    ]);
  });

  it('is the whole value if only one is an array', () => {
    expect(diff([1], { 0: 1 })).toEqual([{ path: [], before: [1], after: { 0: 1 } }]);
  });

  it('ends at its limit', () => {
    expect(diff(Array(500).fill(0), Array(500).fill(1), 10)).toHaveLength(10);
  });

  it('turns one value into the other', () => {
    const names = fc.constantFrom('a', 'b', 'c');
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 3 }, fc.integer({ max: 3, min: 0 }), fc.dictionary(names, tie('tree'))),
    }));
    fc.assert(
      fc.property(tree, tree, (before, after) => {
        expect(patched(before, diff(before, after, Infinity))).toEqual(after);
      }),
    );
  });

  function patched(value: unknown, differences: Difference[]): unknown {
    const root = { value: structuredClone(value) } as Record<string, unknown>;
    for (const { path, after } of differences) {
      const all = ['value', ...path];
      const inner = all.slice(0, -1).reduce((inner, name) => inner[name] as Record<string, unknown>, root);
      if (after === undefined) delete inner[all.at(-1)!];
      else inner[all.at(-1)!] = after;
    }
    return root['value'];
  }
});
