import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse } from '../gateway/contract';
import { Rates } from './rates';

const rates = new Rates();

/** The changes per second of every watch, as far as answers have been seen. */
export function changesOf({ data, at }: Answer<ListWatchesResponse>): Rates {
  if (data) rates.note(counters(data), at);
  return rates;
}

function counters({ watches }: ListWatchesResponse): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  // A gateway that is older than the page does not count changes.
  for (const watch of watches as ReadonlyArray<{ readonly name: string; readonly changes?: number }>) {
    if (watch.changes !== undefined) all.set(watch.name, watch.changes);
  }
  return all;
}
