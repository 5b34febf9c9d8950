import type { EndOfSnapshotEvent, Event } from './protocol.js';
import { ReadOnly } from './read_only.js';
import { mapKey, type Resource, resourceOf } from './resource.js';
import { reaches } from './revision.js';
import type { Snapshot } from './snapshot.js';

/** What changed from one consistent state to the next. */
export interface Changes {
  /** A new snapshot replaced everything: any key may have changed. */
  readonly replaced: boolean;
  /** The keys that were set or deleted; empty if everything was replaced. */
  readonly keys: ReadonlySet<string>;
}

/**
 * A copy of one watch, built from the events of its stream.
 *
 * An event passes through three stages. It is *uncommitted* until an `id` completes
 * its transaction. Then it is *staged*, which survives the connection, since the next
 * stream resumes after the id. It is *shown* when the state is one that the upstream
 * had: at `end_of_snapshot`, at the `bookmark` that ends a catch-up, and otherwise at
 * once. What is shown is never half a transaction, and never newer than the id: the
 * next stream, perhaps of another gateway, cannot begin with something older.
 */
export class Replica<V = unknown> {
  #map: Map<string, Resource<V>>;
  /** The last consistent state: another object for each. */
  shown: ReadonlyMap<string, Resource<V>>;
  /** The revision of what is shown; empty before the first snapshot. */
  revision: string;
  /** Whether there has been a consistent state. */
  complete: boolean;
  /** Why what has arrived cannot be all of it: the server counts other resources. */
  miscounted = '';

  // The reasons why nothing may be shown: a snapshot or the catch-up of a resume has
  // not ended, or the server said that it skips values.
  #loading = true;
  #skipping: boolean | undefined;

  #uncommitted: Event[] = [];
  #staged = new Map<string, Resource<V> | undefined>(); // undefined: deleted
  #replacing: boolean | undefined; // #staged is the whole state
  #revision = ''; // of #staged
  #keys = new Set<string>();
  #replaced = false;

  constructor(initial?: Snapshot) {
    this.#map = new Map(initial?.resources.map((resource) => [mapKey(resource), resource as Resource<V>]));
    this.shown = new ReadOnly(this.#map);
    this.#revision = this.revision = initial?.revision ?? '';
    this.complete = !!initial;
  }

  /** What is staged is not a state that the upstream had. */
  get inconsistent(): boolean | undefined {
    return this.#loading || this.#skipping;
  }

  /** There are complete changes that may not be shown yet. */
  get behind(): boolean {
    return this.#staged.size > 0;
  }

  /** A stream begins: its events are not consistent before `end_of_snapshot`. */
  begin(): void {
    this.lost();
    this.miscounted = '';
    this.#loading = true;
    this.#skipping = false;
  }

  /** The stream has ended: what is uncommitted will be sent again. */
  lost(): void {
    this.#uncommitted = [];
  }

  /** Takes an event of this watch; unknown types are ignored. */
  take(event: Event): void {
    this.#uncommitted.push(event);
  }

  /** An id arrived: all events so far are complete. */
  commit(): void {
    for (const event of this.#uncommitted) this.#stage(event);
    this.#uncommitted = [];
    if (!this.inconsistent) this.#show();
  }

  /** Returns what changed since the last call, or undefined if nothing did. */
  changes(): Changes | undefined {
    if (!this.#replaced && !this.#keys.size) return;
    const changes = { replaced: this.#replaced, keys: this.#keys };
    this.#replaced = false;
    this.#keys = new Set();
    return changes;
  }

  #stage(event: Event): void {
    switch (event.type) {
      case 'reset':
        this.#staged = new Map();
        this.#replacing = this.#loading = true;
        this.#skipping = false;
        this.#revision = ''; // from here on, revisions may be of another order
        return;
      case 'upsert':
      case 'delete':
        this.#staged.set(mapKey(event), event.type === 'upsert' ? resourceOf<V>(event) : undefined);
        break;
      case 'status':
        this.#skipping ||= event.state === 'catching_up';
        return;
      case 'end_of_snapshot':
        this.#compare(event);
        this.#loading = this.#skipping = !!this.miscounted;
        this.#revision = '';
        break;
      case 'bookmark':
        this.#skipping = false;
        break;
      default:
        return;
    }
    // It may be older: where deletes have no revision of their own, a delete may show that of the
    // resource's last version.
    if (reaches(event.revision, this.#revision)) this.#revision = event.revision;
  }

  // Something was lost on the way, or before a position from which a stream has resumed.
  #compare({ watch, count }: EndOfSnapshotEvent): void {
    let held = this.#replacing ? 0 : this.#map.size;
    for (const [key, resource] of this.#staged) held += Number(!!resource) - Number(!this.#replacing && this.#map.has(key));
    if (count != null && count >= 0 && Number(count) !== held) this.miscounted = `${watch} should have ${count} resources, and has ${held}`; // it may be a bigint
  }

  #show(): void {
    if (this.#replacing) this.#replace();
    else if (this.#staged.size) this.#merge();
    this.revision = this.#revision;
    this.complete = true;
  }

  #replace(): void {
    for (const [key, resource] of this.#staged) {
      if (!resource) this.#staged.delete(key);
    }
    this.#map = this.#staged as Map<string, Resource<V>>;
    this.shown = new ReadOnly(this.#map);
    this.#replaced = true;
    this.#keys = new Set();
    this.#staged = new Map();
    this.#replacing = false;
  }

  #merge(): void {
    for (const [key, resource] of this.#staged) {
      if (resource) this.#map.set(key, resource);
      else this.#map.delete(key);
      if (!this.#replaced) this.#keys.add(key);
    }
    this.shown = new ReadOnly(this.#map);
    this.#staged.clear();
  }
}
