import type { Event } from './protocol.js';
import { mapKey, resourceOf, type Resource } from './resource.js';

/** What became different from one consistent state to the next. */
export interface Changes {
  /** A new snapshot took the place of everything: any key may be different. */
  readonly replaced: boolean;
  /** The keys that were put or removed since; empty where all was replaced. */
  readonly keys: ReadonlySet<string>;
}

/**
 * A copy of one watch, made of the events of its stream.
 *
 * An event goes through three places. It waits in the *tail* until an `id` says
 * that what belongs together is complete. Then it is *staged*, which survives the
 * connection, since a stream resumes behind the id. And it is *shown* when the
 * state is one that the upstream had: at `end_of_snapshot`, at the `bookmark` that
 * ends a catch-up, and else at once. What is shown is never half of something, and
 * never newer than the id: the next stream, of another replica perhaps, cannot
 * begin with something older.
 */
export class Replica<V = unknown> {
  /** The last consistent state. The same map until a snapshot replaces it. */
  shown: Map<string, Resource<V>> = new Map();
  /** The revision of what is shown; empty before the first snapshot. */
  revision = '';
  /** Has been consistent once. */
  complete = false;

  // Why nothing may be shown: a snapshot or the catch-up of a resume has not
  // ended, or the server said that it skips values.
  #loading = true;
  #skipping = false;

  #tail: Event[] = [];
  #staged = new Map<string, Resource<V> | undefined>(); // undefined: deleted
  #anew = false;                                        // #staged is all there is
  #revision = '';                                       // of what is staged
  #keys = new Set<string>();
  #replaced = false;

  /** What is staged would not be a state that the upstream had. */
  get held(): boolean {
    return this.#loading || this.#skipping;
  }

  /** A stream begins: until its `end_of_snapshot` nothing is consistent. */
  begin(): void {
    this.lost();
    this.#loading = true;
    this.#skipping = false;
  }

  /** The stream is gone: what no id vouched for comes again. */
  lost(): void {
    this.#tail = [];
  }

  /** Takes an event of this watch; types that it does not know change nothing. */
  take(event: Event): void {
    this.#tail.push(event);
  }

  /** An id came: the tail is complete. */
  commit(): void {
    for (const event of this.#tail) this.#stage(event);
    this.#tail = [];
    if (!this.held) this.#show();
  }

  /** What became different since it was last asked, or undefined for nothing. */
  changes(): Changes | undefined {
    if (!this.#replaced && this.#keys.size === 0) return undefined;
    const changes = { replaced: this.#replaced, keys: this.#keys };
    this.#replaced = false;
    this.#keys = new Set();
    return changes;
  }

  #stage(event: Event): void {
    switch (event.type) {
      case 'reset':
        this.#staged = new Map();
        this.#anew = this.#loading = true;
        this.#skipping = false;
        return;
      case 'upsert':
      case 'delete':
        this.#staged.set(mapKey(event), event.type === 'upsert' ? resourceOf<V>(event) : undefined);
        break;
      case 'status':
        this.#skipping ||= event.state === 'catching_up';
        return;
      case 'end_of_snapshot':
        this.#loading = this.#skipping = false;
        break;
      case 'bookmark':
        this.#skipping = false;
        break;
      default:
        return;
    }
    this.#revision = event.revision;
  }

  #show(): void {
    if (this.#anew) this.#replace();
    else if (this.#staged.size > 0) this.#overlay();
    this.revision = this.#revision;
    this.complete = true;
  }

  #replace(): void {
    for (const [key, resource] of this.#staged) {
      if (!resource) this.#staged.delete(key);
    }
    this.shown = this.#staged as Map<string, Resource<V>>;
    this.#replaced = true;
    this.#keys = new Set();
    this.#staged = new Map();
    this.#anew = false;
  }

  #overlay(): void {
    for (const [key, resource] of this.#staged) {
      if (resource) this.shown.set(key, resource);
      else this.shown.delete(key);
      if (!this.#replaced) this.#keys.add(key);
    }
    this.#staged.clear();
  }
}
