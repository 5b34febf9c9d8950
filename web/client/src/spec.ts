import type { Snapshot } from './snapshot.js';

/** What of a watch is followed; everything unless set. */
export interface Definition {
  /** Only keys that begin with it. */
  readonly prefix?: string;
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
  | ({ readonly watch: Name; readonly initial?: Snapshot | undefined } & Definition);

/** The parts of a definition, as they are called in queries. */
export const viewParameters = ['prefix', 'labels', 'filter', 'fields'] as const;
const parameters = [...viewParameters, 'by', 'sum', 'order', 'limit', 'offset', 'after'] as const;

/** The parameters of a definition that are set, as text. */
export function* parametersOf(definition: Definition): Generator<[name: string, text: string]> {
  for (const name of parameters) {
    const text = String([definition[name] || '']); // empty if there is none; a list has commas between its elements
    if (text) yield [name, text];
  }
}

/** The canonical form of a spec: the name of the watch, and its part of the query of a stream, the same text for the same definition. */
export interface CanonicalSpec {
  readonly watch: string;
  readonly query: string;
  readonly initial?: Snapshot | undefined;
}

export function canonical(spec: WatchSpec): CanonicalSpec {
  const definition: Exclude<WatchSpec, string> = typeof spec === 'string' ? { watch: spec } : spec;
  const { watch, initial } = definition;
  const query = new URLSearchParams({ watch });
  for (const [name, text] of parametersOf(definition)) query.append(`${name}.${watch}`, text);
  return { watch, query: `${query}`, initial };
}

/** Returns the watches of the query of a stream. What it does not say is empty, and its numbers are still text: both are for `canonical`. */
export const specsOf = (query: URLSearchParams): Array<{ watch: string; prefix: string } & Definition> =>
  query
    .getAll('watch')
    .map((watch) => Object.assign({ watch, prefix: '' }, ...parameters.map((name) => ({ [name]: query.get(`${name}.${watch}`) ?? '' }))));
