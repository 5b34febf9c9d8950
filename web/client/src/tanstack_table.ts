import { mapKey, type Resource } from './resource.js';
import type { WindowView } from './window.js';

/** What a TanStack Table is sorted by, and which page it shows: the parts of its state with these names. */
export interface TableState {
  readonly sorting: ReadonlyArray<{ readonly id: string; readonly desc: boolean }>;
  readonly pagination: { readonly pageIndex: number; readonly pageSize: number };
}

export interface TableOrder {
  /** The order while no column is sorted. */
  readonly order: string;
  /** The paths of columns whose `id` is not the path, by `id`. */
  readonly paths?: Readonly<Record<string, string>>;
}

/** Returns which window a table shows: for `watchWindow`, and for `move` when the state has changed. */
export function windowOfTable(
  { sorting, pagination: { pageIndex, pageSize } }: TableState,
  { order, paths = {} }: TableOrder,
): { readonly order: string; readonly offset: number; readonly limit: number } {
  const sorted = sorting.map(({ id, desc }) => `${desc ? '-' : ''}${paths[id] ?? id}`).join();
  return { order: sorted || order, offset: pageIndex * pageSize, limit: pageSize };
}

/** The options of a table that leaves sorting, filters and pages to the gateway. */
export interface WindowTableOptions<V> {
  readonly data: ReadonlyArray<Resource<V>>;
  readonly rowCount: number;
  readonly getRowId: (row: Resource<V>) => string;
  readonly manualSorting: true;
  readonly manualFiltering: true;
  readonly manualPagination: true;
}

/** Returns the options of a table that shows a window. `data` is the same array until a row has changed. */
export const windowTableOptions = <V>({ rows, total }: Pick<WindowView<V>, 'rows' | 'total'>): WindowTableOptions<V> => ({
  data: rows,
  rowCount: total,
  getRowId: mapKey,
  manualSorting: true,
  manualFiltering: true,
  manualPagination: true,
});
