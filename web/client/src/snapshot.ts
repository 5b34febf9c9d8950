import type { Resource } from './resource.js';

/**
 * A watch, or a part of it, at one moment, as plain data: its resources, and the position
 * from which a stream goes on after exactly these. Stored or sent, and passed as `initial`,
 * it spares a page the snapshot.
 */
export interface Snapshot<V = unknown> {
  readonly resources: ReadonlyArray<Resource<V>>;
  readonly revision: string;
  /** Opaque; of this watch alone. */
  readonly position: string;
  /** When it was in sync, in ms as of `Date.now`. */
  readonly since: number;
}
