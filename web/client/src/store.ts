import type { HubStatusEvent } from './port.js';
import type { Event } from './protocol.js';
import { Replica, type Changes } from './replica.js';
import { freshness, type Link, type View } from './view.js';

/** Called with what is shown now, and with what became different since the call before. */
export type Listener<V> = (view: View<V>, changes: Changes) => void;

const none: Changes = { replaced: false, keys: new Set() };

/**
 * One watch: what it holds, how fresh that is, and who wants to know.
 *
 * `subscribe` follows the contract of Svelte's stores: the listener is called at
 * once, and again after each change. A change is a consistent state of the
 * resources, or another freshness; all that arrived together is one.
 */
export class Store<V = unknown> {
  readonly #replica = new Replica<V>();
  readonly #listeners = new Set<Listener<V>>();
  #status: HubStatusEvent | undefined;
  #view: View<V>;
  #position = '';
  #renewing = false;

  constructor(readonly watch: string, readonly prefix: string, link: Link) {
    this.#view = { ...link, state: 'connecting', resources: this.#replica.shown, revision: '' };
  }

  /** What is shown now. The same object until something in it is different. */
  get view(): View<V> {
    return this.#view;
  }

  get resources(): View<V>['resources'] {
    return this.#view.resources;
  }

  get state(): View<V>['state'] {
    return this.#view.state;
  }

  /**
   * Where a stream would go on behind what is shown; empty before the first
   * snapshot. Opaque. It may name other watches of the connection as well, which a
   * server ignores that is not asked for them.
   */
  get position(): string {
    return this.#position;
  }

  /** Calls run at once and after each change, until the function that it returns is called. */
  subscribe(run: Listener<V>): () => void {
    const listener: Listener<V> = (view, changes) => run(view, changes); // the same run twice is two
    this.#listeners.add(listener);
    listener(this.#view, none);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * @internal A stream begins. renewing: it takes the place of one that was well;
   * that short gap is no trouble to tell.
   */
  begin(renewing: boolean): void {
    this.#status = undefined;
    this.#renewing = renewing && this.state === 'in_sync';
    this.#replica.begin();
  }

  /** @internal */
  take(event: Event): void {
    if (event.type === 'status') this.#status = event;
    if (event.type === 'status' || event.type === 'reset') this.#renewing = false;
    this.#replica.take(event);
  }

  /** @internal */
  commit(position: string): void {
    this.#replica.commit();
    if (this.#replica.held) return;
    this.#position = position;
    this.#renewing = false;
  }

  /** @internal */
  lost(): void {
    this.#status = undefined;
    this.#renewing = false;
    this.#replica.lost();
  }

  /** @internal Shows what arrived, and tells the listeners if that is anything new. */
  publish(link: Link): void {
    const view = this.#look(link);
    const changes = this.#replica.changes();
    if (!changes && same(view, this.#view)) return;
    this.#view = view;
    for (const listener of this.#listeners) {
      try {
        listener(view, changes ?? none);
      } catch (error) {
        // The fault of one listener is neither the stream's nor another listener's.
        queueMicrotask(() => { throw error; });
      }
    }
  }

  #look(link: Link): View<V> {
    if (this.#renewing && link.state === 'open') return this.#view;
    const { shown, revision } = this.#replica;
    return { ...freshness(this.#replica, link, this.#status, this.#view), resources: shown, revision };
  }
}

const fields = ['state', 'since', 'reason', 'error', 'resources', 'revision'] as const;

const same = (a: View, b: View) => fields.every((field) => a[field] === b[field]);
