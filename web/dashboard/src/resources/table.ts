import type { Resource, State } from '@watchtide/client';
import type { Sort } from './order';
import type { Row } from './row';

/** The rows of a table in order, of which not all need to be loaded. */
export interface TableRows {
  /** How many places there are for rows. */
  readonly length: number;
  /** The number of resources, and of those that match the filter. */
  readonly total: number;
  readonly matching: number;
  /** Returns the row at an index; undefined if there is none, or if it is not loaded. */
  at(index: number): Row | undefined;
  /** Returns the rows to draw from first to before last. Where they are not loaded yet, these are others. */
  slice(first: number, last: number): readonly Row[];
  get(key: string): Row | undefined;
  /** Returns the index of the row of a key; -1 if it is not shown, or not loaded. */
  indexOf(key: string): number;
  /** Returns a sample of the resources. */
  sample(size: number): Resource[];
}

/** How fresh a table is. */
export interface Freshness {
  readonly state: State;
  readonly since: number;
  readonly reason: string;
  readonly error?: Error;
  readonly verifiedAt?: number;
}

/** The state of a table at one moment, except for its rows. A new object whenever it or a row changes. */
export interface TableStatus {
  /** That of what the rows come from. Components use this one, so that they render a consistent state. */
  readonly view: Freshness;
  /** The state of the rows, which are in sync once they are shown. */
  readonly state: State;
  /** The revision of what is shown; empty before the first snapshot. */
  readonly revision: string;
  /** The number of resources, and of those that match the filter. */
  readonly total: number;
  readonly matching: number;
  /** When the table was paused, in ms as of Date.now; 0 if it is not. */
  readonly paused: number;
  /** The number of changes that wait while it is paused. */
  readonly waiting: number;
  /** The rows are being sorted or filtered, and the old ones are shown. */
  readonly arranging: boolean;
}

/** What the gateway is asked for: an order, and which resources. */
export interface WindowArrangement {
  readonly sort: Sort;
  /** In CEL; empty: all. */
  readonly filter: string;
  readonly prefix: string;
}

/** What a table shows of a watch. */
export interface TableModel {
  readonly rows: TableRows;
  /** The keys of the rows on the screen. */
  visible: ReadonlySet<string>;
  /** The number of changes so far. */
  readonly changes: number;
  readonly status: TableStatus;
  /** The resources that are loaded, by key. */
  readonly resources: ReadonlyMap<string, Resource>;
  /** How the gateway sorts and filters a table on a window, the same object until that changes; undefined if the page does. */
  readonly arrangement: WindowArrangement | undefined;
  /** Whether all resources are loaded that there are. */
  readonly whole: boolean;
  /** Is told of the places on the screen: those from first to before last. */
  look(first: number, last: number): void;
  /** Follows its resources until the returned function is called. */
  follow(): () => void;
  /** Calls changed whenever the status changes, until the returned function is called. */
  subscribe(changed: () => void): () => void;
  /** Pauses the table. */
  pause(): void;
  /** Shows the changes that arrived meanwhile, and continues. */
  resume(): void;
  /** Shows the next step of those that wait. */
  step(): void;
}
