import type { Snapshot } from './snapshot.js';

/** What of a watch is followed; everything unless set. */
export interface Definition {
  /** Only keys that begin with it. */
  readonly prefix?: string;
  /** Exactly these keys, 1,000 at most. In a text there are commas between them, and a key with a comma is in double quotes. */
  readonly keys?: string | readonly string[];
  /** Only resources whose labels match a selector in the syntax of Kubernetes: `app=web,!legacy`. */
  readonly labels?: string;
  /** Only resources for which an expression in CEL is true: `value.state != "passing"`. */
  readonly filter?: string;
  /** Only these paths of the values: names with dots between them. */
  readonly fields?: string | readonly string[];
  /** Only a window of the resources in this order: paths with commas between them, a minus before those that descend, such as `-cpu_percent,name`. With it, `limit` is required. */
  readonly order?: string | readonly string[];
  /** How many resources the window has at most, 1 to 1,000. */
  readonly limit?: number;
  /** How many resources come before the window; 0 unless set. */
  readonly offset?: number;
  /** In place of `offset`, the `next` of a window with the same order: the window begins after it. */
  readonly after?: string;
  /** In place of the resources, how many have the same values of these fields, one to four paths: see `watchCounts`. */
  readonly by?: string | readonly string[];
  /** With `by`, a path: each group also has the sum, the least and the greatest of its numbers. */
  readonly sum?: string;
}

/** A watch to follow: its name, or its name, what of it, and what to begin with. */
export type WatchSpec<Name extends string = string> =
  | Name
  | ({ readonly watch: Name; readonly initial?: Snapshot | undefined; readonly first?: First | undefined } & Definition);

/** The keys of the resources that come before all others, 1,000 at most, as in `keys`: `first` of a view has them until the first snapshot is complete. */
export type First = string | readonly string[];

/** The parts of a definition, as they are called in queries. */
export const viewParameters = ['prefix', 'keys', 'labels', 'filter', 'fields'] as const;
const parameters = [...viewParameters, 'by', 'sum', 'order', 'limit', 'offset', 'after'] as const;

/** The parameters of a definition that are set, as text. */
export function* parametersOf(definition: Definition): Generator<[name: string, text: string]> {
  for (const name of parameters) {
    const value = definition[name] || '';
    const text = name === 'keys' ? keyText(value as string | readonly string[], true) : String([value]); // empty if there is none; a list has commas between its elements
    if (text) yield [name, text];
  }
}

/** Returns a list of keys as text. Without any key it would mean all of them. */
function keyText(keys: string | readonly string[], sorted: boolean): string {
  if (typeof keys === 'string') return keys;
  if (!keys.length) throw new TypeError('keys is an empty list: want at least one key, or no keys for all resources');
  const all = [...new Set(keys)];
  if (sorted) all.sort();
  return all.map((key) => (/[",]/.test(key) ? `"${key.replaceAll('"', '""')}"` : key)).join();
}

/** Returns the keys of a text. */
export const keysOf = (text: string): string[] =>
  Array.from(text.matchAll(/"((?:[^"]|"")*)"|[^,]+/g), ([key, quoted]) => quoted?.replaceAll('""', '"') ?? key);

/** The canonical form of a spec: the name of the watch, and its part of the query of a stream, the same text for the same definition. */
export interface CanonicalSpec {
  readonly watch: string;
  readonly query: string;
  readonly initial?: Snapshot | undefined;
  /** The keys of what comes before all others, as text; empty: none. */
  readonly first: string;
}

export function canonical(spec: WatchSpec): CanonicalSpec {
  const definition: Exclude<WatchSpec, string> = typeof spec === 'string' ? { watch: spec } : spec;
  const { watch, initial, first = '' } = definition;
  const query = new URLSearchParams({ watch });
  for (const [name, text] of parametersOf(definition)) query.append(`${name}.${watch}`, text);
  return { watch, query: `${query}`, initial, first: first.length ? keyText(first, false) : '' };
}

/** Returns the watches of the query of a stream. What it does not say is empty, and its numbers are still text: both are for `canonical`. */
export const specsOf = (query: URLSearchParams): Array<{ watch: string; prefix: string; first: string } & Definition> =>
  query
    .getAll('watch')
    .map((watch) =>
      Object.assign({ watch, prefix: '' }, ...[...parameters, 'first'].map((name) => ({ [name]: query.get(`${name}.${watch}`) ?? '' }))),
    );
