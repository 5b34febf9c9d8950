import { equal } from './equal.js';
import { sameResource } from './on_change.js';
import { mapKey, type Resource } from './resource.js';
import { reaches } from './revision.js';

/** What a write did at the gateway: the resource as it is stored; undefined after a delete, which has no revision. */
export interface Accepted<V> {
  readonly resource: Resource<V> | undefined;
}

/** One write: what it sets, and how far it is. */
export interface PendingWrite<V> {
  /** undefined: it deletes the resource. */
  readonly resource: Resource<V> | undefined;
  /** The revision that it names, if it is not the one that the write before it has made; null: it must be absent. */
  readonly revision: string | null | undefined;
  readonly force: boolean;
  accepted?: Accepted<V>;
}

/**
 * The writes to one key that the stream has not confirmed yet, in order. Each is based on the
 * one before it, and the first on what the store had.
 */
export class PendingWrites<V> {
  readonly #writes: Array<PendingWrite<V>> = [];
  /** The one that is on its way; it may have been removed. */
  sent: PendingWrite<V> | undefined;
  private from: Resource<V> | undefined; // the resource on which the first write is based; undefined if there was none

  get size(): number {
    return this.#writes.length;
  }

  get last(): PendingWrite<V> | undefined {
    return this.#writes.at(-1);
  }

  /** The last of the accepted writes, which come first. */
  get accepted(): PendingWrite<V> | undefined {
    return this.#writes.findLast(({ accepted }) => accepted);
  }

  /** The first write that the gateway has not answered. */
  get next(): PendingWrite<V> | undefined {
    return this.#writes.find(({ accepted }) => !accepted);
  }

  /** Adds a write. base: the resource that the stream has. */
  add(write: PendingWrite<V>, base: Resource<V> | undefined): void {
    if (this.size === 0) this.from = base;
    this.#writes.push(write);
  }

  /** The revision that the next write has to name; null: the resource must not exist. */
  expected(write: PendingWrite<V>): string | null {
    if (write.revision !== undefined) return write.revision;
    const before = this.#writes[this.#writes.indexOf(write) - 1];
    return (before ? before.accepted?.resource : this.from)?.revision ?? null;
  }

  /** Removes a write, and those that are based on it. */
  takeBack(write: PendingWrite<V>): Array<PendingWrite<V>> {
    const index = this.#writes.indexOf(write);
    return index < 0 ? [] : this.#writes.splice(index);
  }

  /** Removes the accepted writes that the stream has reached, given the resource and the revision that it has. */
  settle(base: Resource<V> | undefined, revision: string): void {
    for (let [first] = this.#writes; first?.accepted && this.#reached(first.accepted, base, revision); [first] = this.#writes)
      this.#shift(first.accepted);
  }

  /** Removes the accepted writes up to the given one, whatever the stream has. */
  expire(last: PendingWrite<V>): void {
    if (!this.#writes.includes(last)) return;
    for (let [first] = this.#writes; first?.accepted; [first] = this.#writes) {
      this.#shift(first.accepted);
      if (first === last) return;
    }
  }

  /** Removes all writes, and returns those that have not been sent: revisions are of another order now. */
  clear(): Array<PendingWrite<V>> {
    return this.#writes.splice(0).filter((write) => !write.accepted && write !== this.sent);
  }

  #shift({ resource }: Accepted<V>): void {
    this.from = resource;
    this.#writes.shift();
  }

  #reached({ resource: made }: Accepted<V>, base: Resource<V> | undefined, revision: string): boolean {
    if (!made) return !base || !this.#based(base);
    return reaches(revision, made.revision) || (base !== undefined && reaches(base.revision, made.revision));
  }

  // After a restore of the upstream, another resource may have the same revision.
  #based(base: Resource<V> | undefined): boolean {
    const { from } = this;
    return base && from ? sameResource(base, from) : base === from;
  }

  /**
   * Reports whether the last write is to be shown over a resource of the stream. It is not if somebody
   * else may have changed that meanwhile: either the write will fail, or the stream will bring its result.
   */
  covers(base: Resource<V> | undefined): boolean {
    const [first] = this.#writes;
    if (!first) return false;
    if (first.accepted || this.#based(base)) return first.accepted !== undefined || !this.#named(first);
    return this.#writes.length > 1 && isResult(first, base);
  }

  // It names a revision that the resource does not have.
  #named({ revision }: PendingWrite<V>): boolean {
    return revision !== undefined && revision !== (this.from?.revision ?? null);
  }
}

// The stream may be faster than the answer.
function isResult<V>({ resource }: PendingWrite<V>, base: Resource<V> | undefined): boolean {
  return resource ? base !== undefined && mapKey(resource) === mapKey(base) && equal(resource.value, base.value) : !base;
}
