import { createCollection, createLiveQueryCollection } from '@tanstack/db';
import { constructTable, createColumnHelper, rowPaginationFeature, rowSortingFeature, tableFeatures } from '@tanstack/table-core';
import { storeReactivityBindings } from '@tanstack/table-core/store-reactivity-bindings';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Resource, type Watches, watch } from '../src/index.js';
import { windowCollectionOptions } from '../src/tanstack_db.js';
import { type TableState, windowOfTable, windowTableOptions } from '../src/tanstack_table.js';
import { type LiveWindow, watchWindow } from '../src/window.js';
import { ShownWindow } from './live.js';
import { pass, Server } from './server.js';
import { Gateway, type Row } from './window_gateway.js';

let tide: Watches<{ w: Row }>;
let gateway: Gateway;

beforeEach(() => {
  vi.useFakeTimers();
  const server = new Server();
  tide = watch('http://gateway.test');
  gateway = new Gateway(server);
  gateway.commit(Array.from({ length: 25 }, (_, n) => [`k${String(n).padStart(2, '0')}`, { n, v: n % 5 }]));
});

afterEach(() => {
  tide.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = async () => {
  for (let i = 0; i < 2; i++) {
    await pass(100);
    gateway.answer();
  }
  await pass(100);
};

describe('a collection', () => {
  const collect = async (window: LiveWindow<Row>) => {
    const collection = createCollection(windowCollectionOptions({ id: 'page', window, startSync: true }));
    const transactions: string[][] = [];
    collection.subscribeChanges((changes) => transactions.push(changes.map(({ type, key }) => `${type} ${key}`).sort()));
    await settle();
    return { collection, transactions };
  };
  const keys = (rows: Iterable<Resource<Row>>) => Array.from(rows, ({ key }) => key).sort();

  test('has the rows of the window, and changes with them in one transaction', async () => {
    const window = watchWindow(tide, { watch: 'w', order: '-n', limit: 3 });
    const { collection, transactions } = await collect(window);
    expect(collection.status).toBe('ready');
    expect(keys(collection.values())).toEqual(['k22', 'k23', 'k24']);
    gateway.commit([
      ['k00', { n: 99, v: 0 }],
      ['k24', { n: 24, v: 7 }],
    ]);
    await pass(100);
    expect(transactions.at(-1)).toEqual(['delete k22', 'insert k00', 'update k24']);
    expect(collection.get('k24')?.value.v).toBe(7);
    await collection.cleanup();
    window.close();
  });

  test('moves with the window in one transaction, and keeps what both have', async () => {
    const window = watchWindow(tide, { watch: 'w', order: 'n', limit: 4 });
    const { collection, transactions } = await collect(window);
    const query = createLiveQueryCollection({
      startSync: true,
      query: (q) => q.from({ row: collection }).orderBy(({ row }) => row.value.n, 'desc'),
    });
    window.move({ offset: 2 });
    await settle();
    expect(transactions.at(-1)).toEqual(['delete k00', 'delete k01', 'insert k04', 'insert k05']);
    expect(query.toArray.map(({ key }) => key)).toEqual(['k05', 'k04', 'k03', 'k02']);
    await query.cleanup();
    await collection.cleanup();
    window.close();
  });

  test('of a window that is refused is an error, and follows it no more after a cleanup', async () => {
    const window = new ShownWindow(1, 'a');
    const collection = createCollection(windowCollectionOptions({ id: 'page', window, startSync: true }));
    expect([...collection.keys()]).toEqual(['a']);
    await collection.cleanup();
    expect(window.listeners).toBe(0);
    window.show({ ...window.view, state: 'closed', revision: '', rows: [], error: new Error('there is no such watch') });
    const refused = createCollection(windowCollectionOptions({ id: 'refused', window, startSync: true }));
    expect(refused.status).toBe('error');
    await refused.cleanup();
  });
});

describe('a table', () => {
  const features = tableFeatures({ rowSortingFeature, rowPaginationFeature, coreReactivityFeature: storeReactivityBindings() });
  const helper = createColumnHelper<typeof features, Resource<Row>>();
  const columns = helper.columns([
    helper.accessor(({ value }) => value.n, { id: 'n' }),
    helper.accessor(({ value }) => value.v, { id: 'load' }),
  ]);
  const options = { order: 'n', paths: { load: 'v' } };

  function open() {
    let state: TableState = { sorting: [], pagination: { pageIndex: 0, pageSize: 10 } };
    const window = watchWindow(tide, { watch: 'w', ...windowOfTable(state, options) });
    const change = (next: Partial<TableState>) => {
      state = { ...state, ...next };
      table.setOptions((before) => ({ ...before, state: writable(state) }));
      window.move(windowOfTable(state, options));
    };
    const table = constructTable({
      features,
      columns,
      ...windowTableOptions(window.view),
      state: writable(state),
      onSortingChange: (update) => change({ sorting: typeof update === 'function' ? update([...state.sorting]) : update }),
      onPaginationChange: (update) => change({ pagination: typeof update === 'function' ? update({ ...state.pagination }) : update }),
    });
    window.subscribe((view) => table.setOptions((before) => ({ ...before, ...windowTableOptions(view) })));
    return { table, window };
  }

  const writable = ({ sorting, pagination }: TableState) => ({ sorting: [...sorting], pagination });

  test('shows the pages of the gateway in the order of its columns', async () => {
    const { table, window } = open();
    const shown = () => table.getRowModel().rows.map(({ id }) => id);
    await settle();
    expect([shown()[0], shown().length, table.getPageCount()]).toEqual(['k00', 10, 3]);
    table.nextPage();
    table.nextPage();
    await settle();
    expect(shown()).toEqual(['k20', 'k21', 'k22', 'k23', 'k24']);
    expect(table.getCanNextPage()).toBe(false);
    table.setPageIndex(0);
    table.setSorting([
      { id: 'load', desc: true },
      { id: 'n', desc: false },
    ]);
    await settle();
    expect(shown().slice(0, 6)).toEqual(['k04', 'k09', 'k14', 'k19', 'k24', 'k03']);
    gateway.commit([['k00', { n: 0, v: 9 }]]);
    await pass(100);
    expect(shown()[0]).toBe('k00');
    window.close();
  });

  test('has the same rows while nothing has changed', async () => {
    const { window } = open();
    await settle();
    const { data } = windowTableOptions(window.view);
    gateway.commit([['k24', { n: 24, v: 1 }]]); // beyond the page
    await pass(100);
    expect(windowTableOptions(window.view).data).toBe(data);
    window.close();
  });
});
