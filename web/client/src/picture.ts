import type { Resource } from './resource.js';
import type { Store } from './store.js';

/**
 * A watch, or a part of it, at one moment, as plain data: its resources, and the position
 * from which a stream goes on after exactly these. Stored or sent, and passed as `initial`,
 * it spares a page the snapshot.
 */
export interface Picture<V = unknown> {
  readonly resources: ReadonlyArray<Resource<V>>;
  readonly revision: string;
  /** Opaque; of this watch alone. */
  readonly position: string;
  /** When it was in sync, in ms as of `Date.now`. */
  readonly since: number;
}

/** Returns a picture of a store; undefined before the first snapshot. It takes time in proportion to the resources. */
export function picture<V>(store: Store<V>): Picture<V> | undefined {
  const { watch, shown, view } = store;
  if (!store.position) return undefined;
  const position = store.position.split(',').find((one) => one.startsWith(`${watch}@`)) ?? '';
  const since = view.state === 'in_sync' ? Date.now() : view.since;
  return { resources: [...shown.shown.values()], revision: shown.revision, position, since };
}
