import type { Changes, Resource, View } from '@watchtide/client';

/** The changes of a consistent step that is not shown yet. */
export interface Flush {
  /** The whole state, after a snapshot; otherwise undefined, and only the changes apply. */
  all: Map<string, Resource> | undefined;
  /** undefined: deleted. */
  readonly changes: Map<string, Resource | undefined>;
  revision: string;
}

/** The number of steps that are kept apart; later ones are merged into the last. */
export const maxSteps = 100;

/**
 * The steps that wait to be shown. Their memory is bounded by the size of the state
 * times the number of steps that are kept apart: within a step, a later change of a
 * key replaces an earlier one.
 */
export class Pending {
  #flushes: Flush[] = [];

  /** The number of waiting changes; a snapshot counts as one. */
  get size(): number {
    return this.#flushes.reduce((sum, { all, changes }) => sum + changes.size + (all ? 1 : 0), 0);
  }

  /** Whether nothing waits, not even a new revision. */
  get empty(): boolean {
    return this.#flushes.length === 0;
  }

  /** Adds a call to a listener of the store. apart: as a step of its own, if possible. */
  add({ resources, revision }: View, { replaced, keys }: Changes, apart: boolean): void {
    if (replaced) {
      // earlier changes are obsolete
      this.#flushes = [{ all: new Map(resources), changes: new Map(), revision }];
      return;
    }
    const last = this.#flushes.at(-1);
    const flush = last && (!apart || this.#flushes.length >= maxSteps || isEmpty(last)) ? last : this.#begin();
    flush.revision = revision;
    for (const key of keys) put(flush, key, resources.get(key));
  }

  /** Removes and returns the first step. */
  next(): Flush | undefined {
    return this.#flushes.shift();
  }

  /** Removes all steps and returns them as one. */
  rest(): Flush | undefined {
    const [first, ...others] = this.#flushes;
    this.#flushes = [];
    for (const { changes, revision } of others) {
      first!.revision = revision;
      for (const [key, resource] of changes) put(first!, key, resource);
    }
    return first;
  }

  #begin(): Flush {
    const flush: Flush = { all: undefined, changes: new Map(), revision: '' };
    this.#flushes.push(flush);
    return flush;
  }
}

const isEmpty = ({ all, changes }: Flush) => !all && changes.size === 0;

function put({ all, changes }: Flush, key: string, resource: Resource | undefined): void {
  if (!all) changes.set(key, resource);
  else if (resource) all.set(key, resource);
  else all.delete(key);
}
