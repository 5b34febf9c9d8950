import { unitOf } from './format';
import type { Sort } from './order';
import { PlacesBar } from './PlacesBar';
import type { TableModel, TableStatus } from './table';
import { usePlaces } from './usePlaces';
import type { VisibleRows } from './useVisibleRows';

interface Props {
  readonly watch: string;
  readonly model: TableModel;
  readonly status: TableStatus;
  readonly sort: Sort;
  readonly seen: VisibleRows;
  /** The id of the table. */
  readonly controls: string;
}

/** The scroll bar of a table on a window, once the values at its places are known. */
export function Places({ watch, model, status, sort: { column }, seen: { top, whole, jump }, controls }: Props) {
  const places = usePlaces(watch, model, status);
  if (!places) return null;
  const bar = { places, column, unit: unitOf(column), total: status.matching, top, shown: whole, controls };
  return <PlacesBar {...bar} onJump={jump} />;
}
