import { act, cleanup, render } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Counted, usePrefixTree } from '../../src/keys/usePrefixTree';
import { Source } from '../resources/source';

let counted: Counted | undefined;
function Shown({ source }: { source: Source }) {
  counted = usePrefixTree(source.store);
  return null;
}

const pass = () => act(() => vi.advanceTimersByTimeAsync(50));
const counts = () => {
  const tree = counted?.tree;
  return tree && [tree.all.count, ...tree.below(tree.all).map(({ prefix, count }) => `${prefix} ${count}`)];
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.useRealTimers();
  counted = undefined;
});

describe('the counts of prefixes', () => {
  it('follow the resources', async () => {
    const source = new Source();
    render(<Shown source={source} />);
    await pass();
    expect(counted).toBeUndefined();
    act(() => source.snapshot(1, { 'a/1': 1, 'a/2': 1, 'b/1': 1 }));
    await pass();
    expect(counts()).toEqual([3, 'a/ 2', 'b/ 1']);
    act(() => source.change(2, { 'a/1': 2, 'b/1': undefined, 'c/d/1': 1, 'not/there': undefined }));
    await pass();
    expect(counts()).toEqual([3, 'a/ 2', 'c/ 1']);
    act(() => source.snapshot(3, { 'x.y': 1 }));
    await pass();
    expect(counts()).toEqual([1]); // the separator stays
  });

  it('begin once there are keys with parts', async () => {
    const source = new Source();
    render(<Shown source={source} />);
    act(() => source.snapshot(1, {}));
    await pass();
    expect(counted).toEqual({ tree: undefined });
    act(() => source.change(2, { 'a.1': 1, 'a.2': 1 }));
    await pass();
    expect(counts()).toEqual([2, 'a. 2']);
  });

  it('are complete after many keys, although some change meanwhile', async () => {
    const source = new Source();
    source.snapshot(1, Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`${i % 3}/${i}`, i])));
    render(<Shown source={source} />);
    act(() => source.change(2, { '0/0': undefined, '9/9': 1 }));
    await pass();
    await pass();
    expect(counts()).toEqual([30_000, '0/ 9999', '1/ 10000', '2/ 10000', '9/ 1']);
  });

  it('are complete although there is a change in each slice', async () => {
    const source = new Source();
    source.snapshot(1, Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`${i % 3}/${i}`, i])));
    const most = 200;
    let [time, changes, changing] = [0, 0, false];
    vi.spyOn(performance, 'now').mockImplementation(() => {
      if (!changing && changes < most) {
        changing = true;
        source.change(2 + changes++, { '0/0': changes });
        changing = false;
      }
      return (time += 5);
    });
    render(<Shown source={source} />);
    while (!counted && changes < most) await pass();
    expect([counts(), changes < most]).toEqual([[30_000, '0/ 10000', '1/ 10000', '2/ 10000'], true]);
  });
});
