import { useEffect } from 'react';
import type { TableModel } from './table';

/** The table of the page, if it shows a watch. */
export interface OpenTable {
  readonly watch: string;
  readonly model: TableModel;
}

let open: OpenTable | undefined;

/** Returns the table of the page; undefined if there is none. */
export const openTable = (): OpenTable | undefined => open;

/** Makes a table that of the page while the component is mounted. */
export function useOpenTable(watch: string, model: TableModel): void {
  useEffect(() => {
    const table = { watch, model };
    open = table;
    return () => {
      if (open === table) open = undefined;
    };
  }, [watch, model]);
}
