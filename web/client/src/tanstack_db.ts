import type { CollectionConfig, PendingMutation, SyncConfig } from '@tanstack/db';
import type { Readable } from './listeners.js';
import type { Changes } from './replica.js';
import { mapKey, type Resource } from './resource.js';
import { hasState } from './settled.js';
import type { View } from './view.js';
import type { LiveWindow } from './window.js';
import { WriteChain } from './write_chain.js';

/** Writes resources of a gateway, and rejects if nothing was written, for instance because of a conflict. */
export interface Writes<V> {
  /** revision: the one that the resource must have, or null if it must not exist. */
  put(
    watch: string,
    resource: Resource<V>,
    value: V,
    options: { readonly revision: string | null },
  ): Promise<{ readonly revision: string }>;
  delete(watch: string, resource: Resource<V>, options: { readonly revision: string }): Promise<unknown>;
}

export interface WatchCollectionOptions<V> {
  readonly store: Readable<V> & { readonly watch: string };
  /** The name of the collection; the name of the watch unless set. */
  readonly id?: string;
  /** Makes the collection writable. */
  readonly writes?: Writes<V>;
  /** Whether the collection follows the store at once, and not when it is first used. */
  readonly startSync?: boolean;
}

type Row<V> = Resource<V>;
type Sync<V> = Parameters<SyncConfig<Row<V>, string>['sync']>[0];

/**
 * Returns the options of a TanStack DB collection whose rows are the resources of a watch.
 *
 * Each state that the store shows is one transaction of the collection, and a new snapshot
 * replaces all rows in one. With `writes`, each change is a compare-and-set against the revision of the row
 * that it was made from, and stays optimistic until the store has received it; a conflict takes it back.
 */
export function watchCollectionOptions<V>({
  store,
  id = store.watch,
  writes,
  startSync = false,
}: WatchCollectionOptions<V>): CollectionConfig<Row<V>, string> & { id: string } {
  return {
    id,
    startSync,
    getKey: mapKey,
    sync: { rowUpdateMode: 'full', sync: (sync) => follow(store, sync) },
    ...(writes && handlers(store, writes)),
  };
}

/** Passes every state of a store to a collection, until the returned function is called. */
function follow<V>(store: Readable<V>, sync: Sync<V>): () => void {
  const rows = new Set<string>(); // of the collection
  let ready = false;
  return store.subscribe((view, changes) => {
    if (view.state === 'closed' && view.revision === '') return void sync.markError(view.error);
    if (!hasState(view)) return;
    if (changes.replaced || changes.keys.size > 0) apply(view, changes, rows, sync);
    if (!ready) sync.markReady();
    ready = true;
  });
}

function apply<V>({ resources }: View<V>, { replaced, keys }: Changes, rows: Set<string>, sync: Sync<V>): void {
  sync.begin();
  if (replaced) {
    sync.truncate();
    rows.clear();
  }
  for (const key of replaced ? resources.keys() : keys) {
    const value = resources.get(key);
    if (value) sync.write({ type: rows.has(key) ? 'update' : 'insert', value });
    else if (rows.has(key)) sync.write({ type: 'delete', key });
    if (value) rows.add(key);
    else rows.delete(key);
  }
  sync.commit();
}

export interface WindowCollectionOptions<V> {
  readonly window: LiveWindow<V>;
  /** The name of the collection. */
  readonly id: string;
  /** Whether the collection follows the window at once, and not when it is first used. */
  readonly startSync?: boolean;
}

/**
 * Returns the options of a TanStack DB collection whose rows are those of a window. Each state of the window is one
 * transaction of the collection, and so is a move. The rows of a collection have no order: a live query says it again.
 */
export function windowCollectionOptions<V>({
  window,
  id,
  startSync = false,
}: WindowCollectionOptions<V>): CollectionConfig<Row<V>, string> & { id: string } {
  return { id, startSync, getKey: mapKey, sync: { rowUpdateMode: 'full', sync: (sync) => followWindow(window, sync) } };
}

function followWindow<V>(window: LiveWindow<V>, sync: Sync<V>): () => void {
  let known = new Map<string, Row<V>>();
  let ready = false;
  return window.subscribe((view) => {
    if (view.state === 'closed' && view.revision === '') return void sync.markError(view.error);
    if (!hasState(view)) return;
    const rows = new Map(view.rows.map((row) => [mapKey(row), row]));
    replaceRows(known, rows, sync);
    known = rows;
    if (!ready) sync.markReady();
    ready = true;
  });
}

// A row is the same object until it changes.
function replaceRows<V>(before: ReadonlyMap<string, Row<V>>, after: ReadonlyMap<string, Row<V>>, sync: Sync<V>): void {
  const gone = [...before.keys()].filter((key) => !after.has(key));
  const set = [...after].filter(([key, row]) => before.get(key) !== row);
  if (gone.length + set.length === 0) return;
  sync.begin();
  for (const key of gone) sync.write({ type: 'delete', key });
  for (const [key, value] of set) sync.write({ type: before.has(key) ? 'update' : 'insert', value });
  sync.commit();
}

type Change<V> = PendingMutation<Row<V>>;
type Handler<V> = (params: { readonly transaction: { readonly mutations: ReadonlyArray<Change<V>> } }) => Promise<void>;

function handlers<V>(
  store: WatchCollectionOptions<V>['store'],
  writes: Writes<V>,
): Record<'onInsert' | 'onUpdate' | 'onDelete', Handler<V>> {
  const chain = new WriteChain();
  const put = ({ original, modified }: Change<V>) =>
    chain.add(
      mapKey(modified),
      (original as Partial<Row<V>>).revision ?? null,
      async (revision) => (await writes.put(store.watch, modified, modified.value, { revision })).revision,
      (made) => shows(store, (view) => reaches(view.revision, made) || reaches(view.resources.get(mapKey(modified))?.revision, made)),
    );
  const remove = ({ modified }: Change<V>) =>
    chain.add(
      mapKey(modified),
      modified.revision,
      async (revision) => (await writes.delete(store.watch, modified, { revision: revision ?? '' }), null),
      () => shows(store, ({ resources }) => resources.get(mapKey(modified))?.revision !== modified.revision),
    );
  return { onInsert: each(put), onUpdate: each(put), onDelete: each(remove) };
}

// One after the other: the gateway has no transactions of several keys.
function each<V>(write: (change: Change<V>) => Promise<void>): Handler<V> {
  return async ({ transaction }) => {
    for (const change of transaction.mutations) await write(change);
  };
}

/** Resolves when a store shows the result of a write, or a new snapshot, or will show nothing more. */
function shows<V>(store: Readable<V>, done: (view: View<V>) => boolean): Promise<void> {
  return new Promise((resolve) => {
    let ended = false;
    const end = () => {
      ended = true;
      resolve();
      unsubscribe?.();
    };
    let unsubscribe: (() => void) | undefined;
    unsubscribe = store.subscribe((view, { replaced }) => {
      if (!ended && (replaced || view.state === 'closed' || done(view))) end();
    });
    if (ended) unsubscribe();
  });
}

// Revisions may be too large for a number.
const reaches = (revision = '', wanted: string | null) =>
  wanted === null || revision.length > wanted.length || (revision.length === wanted.length && revision >= wanted);
