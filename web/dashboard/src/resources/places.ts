import { at } from '../gateway/base';
import { refusal } from '../gateway/refusal';
import { ask } from '../gateway/session';
import { column } from './column';
import type { WindowArrangement } from './table';
import { orderOf } from './windowModel';

/** A place in the order of a table, and what the row there has in the column that the table is sorted by. */
export interface Place {
  readonly index: number;
  readonly value: unknown;
}

/** How many places are asked for: each is a request for one resource. */
export const placeCount = 24;

/** Returns so many places of a table, as far apart as they can be, with the first and the last one. */
export const placesOf = (total: number): number[] =>
  Array.from({ length: placeCount }, (_, i) => Math.round((i * (total - 1)) / (placeCount - 1)));

// All of a resource is sent: for one field, the gateway would make a view of its own of the whole watch, and sort it. Larger
// resources are more than a scroll bar is worth.
const maxLength = 64 << 10;

// How many requests are under way at once. A browser has six connections to a host of HTTP/1.1, of which streams have some.
const lanes = 3;

/**
 * Asks the gateway for the values at the places of a table with so many rows: for the first one, and if it answers, for some of the
 * others at once. Those that are gone by then are left out.
 */
export async function readPlaces(watch: string, arrangement: WindowArrangement, total: number, signal: AbortSignal): Promise<Place[]> {
  const { sort, filter, prefix } = arrangement;
  const order = orderOf(sort);
  const reversed = sort.column === 'key' && sort.descending; // keys have one direction
  const { get } = column(sort.column);
  const failed = new AbortController();
  const read = async (index: number): Promise<Place | undefined> => {
    const url = at(`v1/watches/${encodeURIComponent(watch)}/resources`);
    const query = {
      order,
      limit: '1',
      offset: String(reversed ? total - 1 - index : index),
      filter,
      prefix,
    };
    url.search = String(new URLSearchParams(query));
    const response = await ask(url, { signal: AbortSignal.any([signal, failed.signal]) });
    if (!response.ok) throw new Error(await refusal(response));
    const text = await response.text();
    if (text.length > maxLength) throw new Error(`the resource at ${index} has ${text.length} characters`);
    const [resource] = JSON.parse(text).resources;
    return resource && { index, value: get(resource) };
  };
  const [first, ...others] = placesOf(total);
  const places = [await read(first!)];
  const entries = others.entries(); // that all lanes take from
  const lane = async () => {
    for (const [i, index] of entries) places[i + 1] = await read(index);
  };
  await Promise.all(Array.from({ length: lanes }, lane)).finally(() => failed.abort()); // one that fails ends the others
  return places.filter((place) => place !== undefined);
}
