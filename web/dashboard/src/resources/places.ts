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

/** At most so many places are asked for, and the last one: each is a request for one resource. */
export const mostPlaces = 16;

// How exact the last place is, as a share of the distance of the others.
const lastShare = 32;

/**
 * Returns the offsets of the places of a table: from the first one to about the last one, at distances that are a power of two. So
 * they are the same while the total changes a little, and for all pages that show this order: these share what the gateway keeps.
 */
export function offsetsOf(total: number): number[] {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, total / mostPlaces)));
  const offsets = Array.from({ length: Math.ceil(total / step) }, (_, i) => i * step);
  const fine = Math.max(1, step / lastShare);
  const last = Math.floor((total - 1) / fine) * fine;
  return last > offsets.at(-1)! ? [...offsets, last] : offsets;
}

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
  const read = async (offset: number): Promise<Place | undefined> => {
    const url = at(`v1/watches/${encodeURIComponent(watch)}/resources`);
    const query = {
      order,
      limit: '1',
      offset: String(offset),
      filter,
      prefix,
    };
    url.search = String(new URLSearchParams(query));
    const response = await ask(url, { signal: AbortSignal.any([signal, failed.signal]) });
    if (!response.ok) throw new Error(await refusal(response));
    const text = await response.text();
    if (text.length > maxLength) throw new Error(`the resource at ${offset} has ${text.length} characters`);
    const [resource] = JSON.parse(text).resources;
    return resource && { index: reversed ? total - 1 - offset : offset, value: get(resource) };
  };
  const [first, ...others] = offsetsOf(total);
  const places = [await read(first!)];
  const entries = others.entries(); // that all lanes take from
  const lane = async () => {
    for (const [i, offset] of entries) places[i + 1] = await read(offset);
  };
  await Promise.all(Array.from({ length: lanes }, lane)).finally(() => failed.abort()); // one that fails ends the others
  const found = places.filter((place) => place !== undefined);
  return reversed ? found.reverse() : found;
}
