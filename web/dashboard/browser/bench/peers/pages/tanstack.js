// TanStack Table with TanStack Virtual: the rows are an array, which is another one for each
// change, as a table of React needs.

import { createColumnHelper, createSortedRowModel, rowSortingFeature, sortFns, tableFeatures, useTable } from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { createElement as h, memo, useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { cell, follow, columns as names } from './feed.js';

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel(), sortFns });
const helper = createColumnHelper();
const columns = helper.columns(names.map((name) => helper.accessor((row) => cell(row, name), { id: name, header: name, sortFn: 'text' })));
const byKey = { sorting: [{ id: 'key', desc: false }] };
const rowHeight = 28;

function Table() {
  const [data, setData] = useState([]);
  useEffect(() => followInto(setData), []);
  const table = useTable({ features, columns, data, getRowId: (row) => row.key, initialState: byKey });
  const { rows } = table.getRowModel();
  const scroller = useRef(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 10,
  });
  return h(
    'div',
    { ref: scroller, style: { height: 700, overflow: 'auto' } },
    h(
      'div',
      { style: { height: virtualizer.getTotalSize(), position: 'relative' } },
      virtualizer.getVirtualItems().map(({ index, start }) => h(Row, { key: rows[index].id, row: rows[index].original, start })),
    ),
  );
}

const Row = memo(({ row, start }) =>
  h(
    'div',
    { style: { position: 'absolute', top: start, height: rowHeight, display: 'flex' } },
    names.map((name) => h('span', { key: name, style: { width: 150, overflow: 'hidden' } }, String(cell(row, name)))),
  ),
);

function followInto(setData) {
  let data = [];
  let places = new Map();
  follow({
    all(rows) {
      data = rows;
      places = new Map(rows.map(({ key }, i) => [key, i]));
      flushSync(() => setData(data));
    },
    changed({ upserts, deletes }) {
      data = data.slice();
      for (const row of upserts) {
        const place = places.get(row.key) ?? data.length;
        places.set(row.key, place);
        data[place] = row;
      }
      if (deletes.length > 0) {
        const gone = new Set(deletes);
        data = data.filter(({ key }) => !gone.has(key));
        places = new Map(data.map(({ key }, i) => [key, i]));
      }
      flushSync(() => setData(data));
    },
  });
}

createRoot(document.getElementById('grid')).render(h(Table));
