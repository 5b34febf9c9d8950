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
}

/** A watch to follow: its name, or its name, what of it, and what to begin with. */
export type WatchSpec<Name extends string = string> =
  | Name
  | ({ readonly watch: Name; readonly initial?: Snapshot | undefined } & Definition);

/** The parts of a definition, as they are called in queries. */
export const parameters = ['prefix', 'labels', 'filter', 'fields'] as const;

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
  for (const name of parameters) {
    const text = String([definition[name]]); // empty if there is none; a list has commas between its elements
    if (text) query.append(`${name}.${watch}`, text);
  }
  return { watch, query: `${query}`, initial };
}

/** Returns the watches of the query of a stream. */
export const specsOf = (query: URLSearchParams) =>
  query.getAll('watch').map((watch) => {
    const of = (name: (typeof parameters)[number]) => query.get(`${name}.${watch}`) ?? '';
    return { watch, prefix: of('prefix'), labels: of('labels'), filter: of('filter'), fields: of('fields') };
  });
