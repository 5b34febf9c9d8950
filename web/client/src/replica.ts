import { Digest, hashOfHex } from './digest.js';
import { Hashed } from './hashed.js';
import type { BookmarkEvent, EndOfSnapshotEvent, Event, UpsertEvent } from './protocol.js';
import { ReadOnly } from './read_only.js';
import { mapKey, type Resource, resourceOf } from './resource.js';
import { reaches } from './revision.js';
import type { HashedResource, Snapshot } from './snapshot.js';
import type { Hash } from './xxh64.js';

/** What changed from one consistent state to the next. */
export interface Changes {
  /** A new snapshot replaced everything: any key may have changed. */
  readonly replaced: boolean;
  /** The keys that were set or deleted; empty if everything was replaced. */
  readonly keys: ReadonlySet<string>;
}

/** Where a window is among the resources of its watch, in its order. */
export interface Place {
  /** The number of resources that it is a window of. */
  readonly total: number;
  /** How many of them come before the window. */
  readonly before: number;
  /** The `after` of what comes after the window; empty: nothing does. */
  readonly next: string;
}

// What an event says of the state at its revision.
type Said = Pick<BookmarkEvent, 'watch' | 'digest'> & Partial<Pick<EndOfSnapshotEvent, 'count' | 'verify'>>;

interface Taken {
  readonly event: Event;
  /** Of the resource of an upsert, if it is known. */
  readonly hash: Hash | undefined;
}

// Returns the same object while nothing in it changes. Numbers may be bigints.
function placeOf(
  { total, before, next = '' }: Pick<BookmarkEvent, 'total' | 'before' | 'next'>,
  known: Place | undefined,
): Place | undefined {
  if (total === undefined) return known;
  const place = { total: Number(total), before: Number(before), next };
  return known && known.total === place.total && known.before === place.before && known.next === next ? known : place;
}

// The most events that wait while it is found out what differs.
const maxWaiting = 200_000;

/**
 * A copy of one watch, built from the events of its stream.
 *
 * An event passes through three stages. It is *uncommitted* until an `id` completes
 * its transaction. Then it is *staged*, which survives the connection, since the next
 * stream resumes after the id. It is *shown* when the state is one that the upstream
 * had: at `end_of_snapshot`, at the `bookmark` that ends a catch-up, and otherwise at
 * once. What is shown is never half a transaction, and never newer than the id: the
 * next stream, perhaps of another gateway, cannot begin with something older.
 *
 * Where the server says which digest its state has, and what is staged has another one, it *differs*: nothing
 * further is staged until it is made whole, or rolled back to what is shown.
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
  /** The digest that the server has, if what is staged has another one. */
  differs = '';
  /** When what is shown was last found to be what the server has. */
  verifiedAt: number | undefined;
  #proved: number | undefined; // when that was found of what is staged
  #newlyVerified = false;

  // The reasons why nothing may be shown: a snapshot or the catch-up of a resume has
  // not ended, or the server said that it skips values.
  #loading = true;
  #skipping: boolean | undefined;

  /** Before there has been a consistent state: the resources that were asked for first. */
  first: ReadonlyMap<string, Resource<V>> | undefined;

  /** Where what is shown is among the resources that it is a window of. */
  place: Place | undefined;
  #place: Place | undefined; // of what is staged
  /** The number of the newest move of the window that what is shown includes; 0: none on this stream. */
  moved = 0;
  #moved = 0; // of what is staged

  #uncommitted: Taken[] = [];
  #covered = 0; // how many of them an id has completed
  #staged = new Map<string, Resource<V> | undefined>(); // undefined: deleted
  #replacing: boolean | undefined; // #staged is the whole state
  #revision = ''; // of #staged
  #digest = new Digest(); // of what is shown, with #staged
  #shownDigest: Digest;
  #keys = new Set<string>();
  #replaced = false;

  /** hasFirst: the resources up to the first id after a reset were asked for. */
  constructor(
    initial?: Snapshot,
    private readonly hasFirst = false,
  ) {
    this.#map = new Map(initial?.resources.map((resource) => [mapKey(resource), this.#known(resource as HashedResource<V>)]));
    this.#shownDigest = this.#digest.copy();
    this.shown = new ReadOnly(this.#map);
    this.#revision = this.revision = initial?.revision ?? '';
    this.complete = !!initial;
  }

  /** What is staged is not a state that the upstream had. */
  get inconsistent(): boolean | undefined {
    return this.#loading || this.#skipping || !!this.differs;
  }

  /** The digest of all that is held can be computed. */
  get verifiable(): boolean {
    return !this.#digest.unknown;
  }

  /** There are complete changes that may not be shown yet. */
  get behind(): boolean {
    return this.#staged.size > 0;
  }

  /** A stream begins: its events are not consistent before `end_of_snapshot`. */
  begin(): void {
    this.lost();
    this.miscounted = '';
    this.moved = this.#moved = 0;
    this.#loading = true;
    this.#skipping = false;
  }

  /** The stream has ended: what is uncommitted will be sent again. */
  lost(): void {
    this.#uncommitted = [];
    this.#covered = 0;
    if (this.differs) this.#rollBack();
  }

  /** Takes an event of this watch; unknown types are ignored. hash: of the resource of an upsert, if it is known. */
  take(event: Event, hash?: Hash): void {
    this.#uncommitted.push({ event, hash });
    if (this.differs && this.#uncommitted.length > maxWaiting) throw new Error(`more than ${maxWaiting} events wait for what differs`);
  }

  /** An id arrived: all events so far are complete. */
  commit(): void {
    this.#covered = this.#uncommitted.length;
    this.#advance();
  }

  /** The keys that would be shown next, and the hashes of their resources. */
  *held(): Generator<[key: string, hash: Hash | undefined]> {
    if (!this.#replacing) {
      for (const [key, resource] of this.#map) if (!this.#staged.has(key)) yield [key, Hashed.hashOf(resource)];
    }
    for (const [key, resource] of this.#staged) if (resource) yield [key, Hashed.hashOf(resource)];
  }

  /** What differs: a resource that the server has, or else does not have. */
  mend(key: string, event?: UpsertEvent, hash?: Hash): void {
    this.#set(key, event && this.#resource(event, hash));
  }

  /** What differed is mended: goes on with what has arrived meanwhile. */
  mended(): void {
    if (`${this.#digest}` !== this.differs) throw new Error('what was read has another digest');
    this.#verified();
    this.#advance();
  }

  #verified(): void {
    this.differs = '';
    this.#proved = Date.now();
  }

  #advance(): void {
    let n = 0;
    while (n < this.#covered && !this.differs) this.#stage(this.#uncommitted[n++]!);
    this.#uncommitted = this.#uncommitted.slice(n);
    this.#covered -= n;
    if (this.hasFirst && !this.complete && this.#staged.size) this.first ??= new Map(this.#staged as Map<string, Resource<V>>);
    if (!this.inconsistent) this.#show();
  }

  #rollBack(): void {
    this.differs = '';
    this.#proved = undefined;
    this.#staged = new Map();
    this.#replacing = false;
    this.#digest = this.#shownDigest.copy();
    this.#revision = this.revision;
  }

  /** Returns what changed since the last call, or undefined if nothing did. */
  changes(): Changes | undefined {
    if (!this.#replaced && !this.#keys.size) return;
    const changes = { replaced: this.#replaced, keys: this.#keys };
    this.#replaced = false;
    this.#keys = new Set();
    return changes;
  }

  /** Reports whether what is shown was verified since the last call. */
  verified(): boolean {
    const newly = this.#newlyVerified;
    this.#newlyVerified = false;
    return newly;
  }

  #stage({ event, hash }: Taken): void {
    switch (event.type) {
      case 'reset':
        this.#staged = new Map();
        this.first = undefined;
        this.#digest = new Digest();
        this.#replacing = this.#loading = true;
        this.#skipping = false;
        this.#revision = ''; // from here on, revisions may be of another order
        return;
      case 'upsert':
        this.#set(mapKey(event), this.#resource(event, hash));
        break;
      case 'delete':
        this.#set(mapKey(event));
        break;
      case 'status':
        this.#skipping ||= event.state === 'catching_up';
        return;
      case 'end_of_snapshot':
        this.#compare(event);
        this.#arrive(event);
        this.#loading = this.#skipping = !!this.miscounted;
        this.#revision = '';
        break;
      case 'bookmark':
        this.#compare(event);
        this.#arrive(event);
        this.#skipping = false;
        break;
      default:
        return;
    }
    // It may be older: where deletes have no revision of their own, a delete may show that of the
    // resource's last version.
    if (reaches(event.revision, this.#revision)) this.#revision = event.revision;
  }

  #arrive(event: Pick<BookmarkEvent, 'total' | 'before' | 'next' | 'move'>): void {
    this.#place = placeOf(event, this.#place);
    if (event.move) this.#moved = Number(event.move);
  }

  #resource(event: UpsertEvent, hash: Hash | undefined): Resource<V> {
    const resource = resourceOf<V>(event);
    if (hash !== undefined) new Hashed(resource, hash);
    return resource;
  }

  #set(key: string, resource?: Resource<V>): void {
    const staged = this.#staged.get(key);
    const before = staged || this.#replacing || this.#staged.has(key) ? staged : this.#map.get(key);
    if (before) this.#digest.subtract(Hashed.hashOf(before));
    if (resource) this.#digest.add(Hashed.hashOf(resource));
    this.#staged.set(key, resource);
  }

  // Returns a resource with which the copy begins.
  #known({ hash: hex, ...resource }: HashedResource<V>): Resource<V> {
    const hash = hashOfHex(hex);
    if (hash !== undefined) new Hashed(resource, hash);
    this.#digest.add(hash);
    return resource;
  }

  // Something was lost on the way, or before a position from which a stream has resumed, or is no longer held.
  #compare({ watch, count, digest, verify }: Said): void {
    const held = this.#digest;
    if (typeof digest === 'string' && this.verifiable) {
      if (digest === `${held}`) this.#verified();
      else this.differs = digest;
    } else if (verify) this.miscounted = `${watch} cannot be verified`;
    // The count may be a bigint.
    else if (count != null && count >= 0 && Number(count) !== held.count)
      this.miscounted = `${watch} should have ${count} resources, and has ${held.count}`;
  }

  #show(): void {
    if (this.#replacing) this.#replace();
    else if (this.#staged.size) this.#merge();
    this.revision = this.#revision;
    this.place = this.#place;
    this.moved = this.#moved;
    this.#shownDigest = this.#digest.copy();
    this.complete = true;
    this.first = undefined;
    if (this.#proved === undefined) return;
    this.verifiedAt = this.#proved;
    this.#newlyVerified = true;
    this.#proved = undefined;
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
