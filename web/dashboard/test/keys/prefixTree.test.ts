import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linesOf } from '../../src/keys/KeyPanel';
import { type Branch, PrefixTree, separatorOf } from '../../src/keys/prefixTree';

const treeOf = (keys: readonly string[]) => {
  const tree = new PrefixTree('/');
  for (const key of keys) tree.add(key);
  return tree;
};

const flat = (tree: PrefixTree, branch: Branch = tree.all): Array<[string, number]> => [
  [branch.prefix, branch.count],
  ...tree.below(branch).flatMap((below) => flat(tree, below)),
];

describe('a tree of prefixes', () => {
  it('counts the keys below each', () => {
    expect(flat(treeOf(['a/1', 'a/b/1', 'a/b/2', 'c', 'd/']))).toEqual([
      ['', 5],
      ['a/', 3],
      ['a/b/', 2],
    ]);
  });

  it('is the same after changes as if it were made of what is left', () => {
    const part = fc.constantFrom('a', 'b', '', 'ccc');
    const key = fc.array(part, { minLength: 1, maxLength: 9 }).map((parts) => parts.join('/'));
    fc.assert(
      fc.property(fc.uniqueArray(key, { maxLength: 40 }), fc.infiniteStream(fc.boolean()), (keys, chances) => {
        const tree = treeOf(keys);
        const [gone, left] = [[] as string[], [] as string[]];
        for (const key of keys) (chances.next().value ? gone : left).push(key);
        for (const key of gone) tree.remove(key);
        expect(flat(tree)).toEqual(flat(treeOf(left)));
        for (const [prefix, count] of flat(tree).slice(1))
          expect(count).toBe(left.filter((key) => key.startsWith(prefix) && key !== prefix).length);
      }),
    );
  });

  it('shows the branches below open ones', () => {
    const tree = treeOf(['a/b/1', 'a/c/1', 'd/1']);
    const shown = (...open: string[]) => linesOf(tree, new Set(open)).map(({ branch, level }) => `${level} ${branch.prefix}`);
    expect(shown()).toEqual(['1 ']);
    expect(shown('', 'a/')).toEqual(['1 ', '2 a/', '3 a/b/', '3 a/c/', '2 d/']);
  });

  it('has the separator that most keys have', () => {
    expect(separatorOf(['a/b.c', 'd/e', 'f:g'])).toBe('/');
    expect(separatorOf(['a.b', 'c.d'])).toBe('.');
    expect(separatorOf(['a', 'b', 'c', 'd', 'e', 'f/g'])).toBeUndefined();
    expect(separatorOf([])).toBeUndefined();
  });
});
