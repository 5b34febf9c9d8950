import type { WriteOptions } from './http.js';
import { added, type Listener, Listeners, type Readable } from './listeners.js';
import { Overlaid } from './overlaid.js';
import { type PendingWrite, PendingWrites } from './pending_writes.js';
import type { Changes } from './replica.js';
import type { Resource } from './resource.js';
import { reaches } from './revision.js';
import type { View } from './view.js';

// An accepted write is shown until the stream brings it, and at most for this long while in sync.
const settleMs = 10_000;

// A user does not make more; a loop that does must not fill the memory.
const maxWrites = 1_000;

/** Sends writes: the `Requests` of `http` do. */
export interface Writer {
  // biome-ignore lint: any, as in the interface that it is taken from
  put(watch: string, key: string, value: any, options: WriteOptions): Promise<Resource<any>>;
  delete(watch: string, key: string, options: WriteOptions): Promise<boolean>;
}

export interface OverlayWriteOptions {
  /** The revision that the resource must have, or null if it must not exist; that of what is shown unless set. */
  readonly revision?: string | null | undefined;
  /** Writes whatever the revision is. */
  readonly force?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A store with writes over it that the gateway has not confirmed yet. */
export interface Overlay<V> extends Readable<V> {
  readonly watch: string;
  /** The keys with writes that are not confirmed, and how many these are. */
  readonly pending: ReadonlyMap<string, number>;
  /**
   * Writes a value, and shows it at once. Resolves with the resource as it is stored; rejects with a
   * `ConflictError` if another one was there, or with the error of the request, whose outcome
   * may then be unknown. Then it is not shown any more, nor are writes to this key that were made after it, which
   * reject with the same error. Writes to one key are sent one after the other.
   */
  put(key: string, value: V, options?: OverlayWriteOptions): Promise<Resource<V>>;
  /** Deletes a resource, like `put`; resolves with whether there was one. */
  delete(key: string, options?: OverlayWriteOptions): Promise<boolean>;
  /** Ends it: it shows nothing new. Writes that are under way go on. */
  close(): void;
}

/**
 * Returns a view of a store that shows writes at once, confirms them when the stream brings their
 * revision, and takes them back at a conflict or a failure. It never hides a later value that
 * the stream has brought.
 */
export const optimistic = <V>(store: Readable<V> & { readonly watch: string }, writer: Writer): Overlay<V> =>
  new OptimisticOverlay(store, writer);

interface Waiting<V> extends PendingWrite<V> {
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: Resource<V> | boolean) => void;
  readonly reject: (reason: unknown) => void;
}

class OptimisticOverlay<V> implements Overlay<V> {
  readonly watch: string;
  readonly #listeners = new Listeners<View<V>>();
  readonly #writes = new Map<string, PendingWrites<V>>();
  readonly #over = new Map<string, Resource<V> | undefined>();
  readonly #unsubscribe: () => void;
  #view!: View<V>;
  #closed = false;

  constructor(
    private readonly store: Readable<V> & { readonly watch: string },
    private readonly writer: Writer,
  ) {
    this.watch = store.watch;
    this.#view = this.#laid(store.view);
    let first = true;
    this.#unsubscribe = store.subscribe((view, changes) => {
      if (!first) this.#moved(view, changes);
      first = false;
    });
  }

  get view(): View<V> {
    return this.#view;
  }

  get pending(): ReadonlyMap<string, number> {
    return new Map([...this.#writes].flatMap(([key, { size }]) => (size > 0 ? [[key, size]] : [])));
  }

  subscribe(run: Listener<V>): () => void {
    return this.#listeners.add(run, this.#view, added(this.#view.resources));
  }

  put(key: string, value: V, options: OverlayWriteOptions = {}): Promise<Resource<V>> {
    return this.#write(key, { value }, options) as Promise<Resource<V>>;
  }

  delete(key: string, options: OverlayWriteOptions = {}): Promise<boolean> {
    return this.#write(key, undefined, options) as Promise<boolean>;
  }

  close(): void {
    this.#closed = true;
    this.#unsubscribe();
  }

  async #write(key: string, set: { value: V } | undefined, options: OverlayWriteOptions): Promise<Resource<V> | boolean> {
    const { revision, force = false, signal } = options;
    signal?.throwIfAborted();
    if (this.#closed) throw new Error('the overlay is closed');
    const count = [...this.#writes.values()].reduce((all, { size }) => all + size, 0);
    if (count >= maxWrites) throw new Error(`${count} writes have no answer yet: wait for some of them`);
    const shown = this.#view.resources.get(key);
    const resource = set && { ...namesOf(key), revision: shown?.revision ?? '', value: set.value };
    const ended = new AbortController();
    const made = new Promise<Resource<V> | boolean>((resolve, reject) =>
      this.#add(key, { resource, revision, force, signal, resolve, reject }, ended.signal),
    );
    return made.finally(() => ended.abort());
  }

  #add(key: string, write: Waiting<V>, ended: AbortSignal): void {
    const writes = this.#writes.get(key) ?? new PendingWrites<V>();
    this.#writes.set(key, writes);
    writes.add(write, this.store.view.resources.get(key));
    // One that is on its way is ended by the writer.
    const abort = () => writes.sent !== write && this.#takeBack(key, writes, write, write.signal!.reason);
    write.signal?.addEventListener('abort', abort, { signal: ended });
    this.#changed(key);
    if (!writes.sent) void this.#send(key, writes);
  }

  // Sends the writes of a key one after the other, until there is none.
  async #send(key: string, writes: PendingWrites<V>): Promise<void> {
    for (let write = writes.next as Waiting<V> | undefined; write; write = writes.next as Waiting<V> | undefined) {
      writes.sent = write;
      try {
        const result = await this.#request(key, writes, write);
        this.#accepted(key, writes, write, result);
        write.resolve(result);
      } catch (error) {
        this.#takeBack(key, writes, write, error);
      }
    }
    writes.sent = undefined;
    this.#changed(key);
  }

  async #request(key: string, writes: PendingWrites<V>, write: Waiting<V>): Promise<Resource<V> | boolean> {
    const { signal, force, resource } = write;
    signal?.throwIfAborted(); // after it was given, and before it was added
    const options: WriteOptions = { signal, ...(!force && { revision: writes.expected(write) }) };
    if (!resource) return this.writer.delete(this.watch, key, options);
    return this.writer.put(this.watch, key, resource.value, options) as Promise<Resource<V>>;
  }

  #accepted(key: string, writes: PendingWrites<V>, write: Waiting<V>, result: Resource<V> | boolean): void {
    write.accepted = { resource: typeof result === 'object' ? result : undefined };
    this.#changed(key);
    if (writes.size > 0) this.#expire(key, writes, write);
  }

  // The stream may never bring a write that is accepted: the upstream was restored, for instance. A store that is
  // not in sync then gets the same time again when it is.
  #expire(key: string, writes: PendingWrites<V>, write: PendingWrite<V>): void {
    const timer = setTimeout(() => {
      if (this.#closed || this.#writes.get(key) !== writes || this.store.view.state !== 'in_sync') return;
      writes.expire(write);
      this.#changed(key);
    }, settleMs);
    (timer as { unref?(): void }).unref?.(); // does not keep Node alive
  }

  #takeBack(key: string, writes: PendingWrites<V>, write: Waiting<V>, reason: unknown): void {
    for (const one of writes.takeBack(write) as Array<Waiting<V>>) one.reject(reason);
    this.#changed(key);
  }

  // The store has another view.
  #moved(view: View<V>, changes: Changes): void {
    const back = !reaches(view.revision, this.#view.revision); // another order, or a replica that is behind
    const keys = new Set(changes.keys);
    const inSync = view.state === 'in_sync' && this.#view.state !== 'in_sync';
    for (const [key, writes] of this.#writes) {
      if (inSync && writes.accepted) this.#expire(key, writes, writes.accepted);
      if (back)
        for (const one of writes.clear() as Array<Waiting<V>>) one.reject(new Error('the upstream has gone back: the write was not sent'));
      if (this.#lay(key)) keys.add(key);
    }
    this.#publish({ replaced: changes.replaced, keys: changes.replaced ? new Set() : keys });
  }

  #changed(key: string): void {
    if (this.#lay(key)) this.#publish({ replaced: false, keys: new Set([key]) });
  }

  #publish(changes: Changes): void {
    if (this.#closed) return;
    this.#view = this.#laid(this.store.view);
    this.#listeners.call(this.#view, changes);
  }

  #laid(view: View<V>): View<V> {
    return { ...view, resources: new Overlaid(view.resources, this.#over) };
  }

  // Decides what is shown for a key, and returns whether that has changed.
  #lay(key: string): boolean {
    const { resources, revision } = this.store.view;
    const [writes, before, had] = [this.#writes.get(key), this.#over.get(key), this.#over.has(key)];
    writes?.settle(resources.get(key), revision);
    if (!writes?.size && !writes?.sent) this.#writes.delete(key);
    if (!writes?.covers(resources.get(key))) return this.#over.delete(key);
    this.#over.set(key, writes.last?.resource);
    return !had || before !== writes.last?.resource;
  }
}

// In a map, a key that is not UTF-8 is in base64, after a lone surrogate.
const namesOf = (key: string): Pick<Resource, 'key' | 'key_encoding'> =>
  key[0] === '\udfff' ? { key: key.slice(1), key_encoding: 'base64' } : { key };
