import type { Resource } from '@watchtide/client';

/** The value by which a row is sorted, computed once and not at each comparison. undefined: it has none. */
export type Rank = number | bigint | string | undefined;

/** One resource in the table. */
export interface Row {
  /** As in the store's map. */
  readonly key: string;
  resource: Resource;
  /** The value by which it is sorted. */
  readonly rank: Rank;
  /** Whether it matches the filter. */
  listed: boolean;
  /** When it was created, as of performance.now; 0 if it came with a snapshot. */
  readonly createdAt: number;
  /** When it was deleted; 0 while it exists. */
  deletedAt: number;
}
