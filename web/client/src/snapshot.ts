import type { Resource } from './resource.js';

/** A resource with the hash of what the gateway has sent, as 16 hexadecimal digits. Without it, a store that begins with the resource cannot be verified. */
export type HashedResource<V = unknown> = Resource<V> & { readonly hash?: string };

/**
 * A watch, or a part of it, at one moment, as plain data: its resources, and the position
 * from which a stream goes on after exactly these. Stored or sent, and passed as `initial`,
 * it spares a page the snapshot.
 */
export interface Snapshot<V = unknown> {
  readonly resources: ReadonlyArray<HashedResource<V>>;
  readonly revision: string;
  /** Opaque; of this watch alone. */
  readonly position: string;
  /** When it was in sync, in ms as of `Date.now`. */
  readonly since: number;
}
