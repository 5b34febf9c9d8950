import { cleanup, render } from '@testing-library/react';
import { useLayoutEffect } from 'react';
import { afterEach, expect, it } from 'vitest';
import type { TableRows } from '../../src/resources/table';
import { useCursor } from '../../src/resources/useCursor';

afterEach(cleanup);

it('does not scroll to a row that is not in the document yet', () => {
  const keys: string[] = []; // in place, as the rows of a model change
  const rows = {
    get length() {
      return keys.length;
    },
    at: () => undefined,
    indexOf: (key: string) => keys.indexOf(key),
  } as Partial<TableRows> as TableRows;
  let drawn = 0;
  const revealed: { index: number; drawn: number }[] = [];
  const nothing = () => {};
  function Table() {
    const { length } = keys;
    useLayoutEffect(() => {
      drawn = length;
    });
    const reveal = (index: number) => void revealed.push({ index, drawn });
    useCursor(rows, { page: 1, reveal, opened: 'b', onOpen: nothing, onMove: nothing, onClose: nothing });
    return null;
  }
  // The rows arrive between a rendering and the effects that follow later.
  function Page() {
    useLayoutEffect(() => {
      keys.splice(0, keys.length, 'a', 'b');
    }, []);
    return <Table />;
  }
  const { rerender } = render(<Page />);
  rerender(<Page />);
  expect(revealed).toEqual([{ index: 1, drawn: 2 }]);
});
