// AG Grid Community as its documentation advises for streams: rows have identities, and
// changes are asynchronous transactions.
import { AllCommunityModule, createGrid, ModuleRegistry } from 'ag-grid-community';
import { cell, columns, follow } from './feed.js';

ModuleRegistry.registerModules([AllCommunityModule]);

let grid;
await new Promise((ready) => {
  grid = createGrid(document.getElementById('grid'), {
    columnDefs: columns.map((column) => ({
      colId: column,
      headerName: column,
      valueGetter: ({ data }) => cell(data, column),
      ...(column === 'key' && { sort: 'asc' }),
    })),
    defaultColDef: { sortable: true },
    getRowId: ({ data }) => data.key,
    rowData: [],
    asyncTransactionWaitMillis: 50,
    suppressModelUpdateAfterUpdateTransaction: true, // the order is that of keys, which do not change
    onGridReady: ready,
  });
});

const known = new Set();

follow({
  all(rows) {
    known.clear();
    for (const { key } of rows) known.add(key);
    grid.setGridOption('rowData', rows);
  },
  changed({ upserts, deletes }) {
    const transaction = { add: [], update: [], remove: [] };
    for (const row of upserts) {
      (known.has(row.key) ? transaction.update : transaction.add).push(row);
      known.add(row.key);
    }
    for (const key of deletes) if (known.delete(key)) transaction.remove.push({ key });
    return new Promise((applied) => grid.applyTransactionAsync(transaction, applied));
  },
});
