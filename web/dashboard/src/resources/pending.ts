import type { Changes, Resource, View } from '@watchtide/client';

/** What became different in a consistent step, and has not been shown yet. */
export interface Flush {
  /** All that there is, after a snapshot; otherwise only the changes count. */
  all: Map<string, Resource> | undefined;
  /** undefined: deleted. */
  readonly changes: Map<string, Resource | undefined>;
  revision: string;
}

/** Of so many steps each can be shown by itself; those that come later become one with the last. */
export const mostSteps = 100;

/**
 * The steps that wait to be shown. They take no more memory than what they end in,
 * times the few that are kept apart: what comes later takes the place of what came
 * before under the same key.
 */
export class Pending {
  #flushes: Flush[] = [];

  /** How many changes wait; all that there is after a snapshot counts as one. */
  get size(): number {
    return this.#flushes.reduce((sum, { all, changes }) => sum + changes.size + (all ? 1 : 0), 0);
  }

  /** Whether anything waits, be it only a revision. */
  get empty(): boolean {
    return this.#flushes.length === 0;
  }

  /** Takes what a listener of the store is told. apart: to be shown by itself, if it can be kept. */
  add({ resources, revision }: View, { replaced, keys }: Changes, apart: boolean): void {
    if (replaced) { // what came before is of no use any more
      this.#flushes = [{ all: new Map(resources), changes: new Map(), revision }];
      return;
    }
    const last = this.#flushes.at(-1);
    const flush = last && (!apart || this.#flushes.length >= mostSteps || nothing(last)) ? last : this.#begin();
    flush.revision = revision;
    for (const key of keys) put(flush, key, resources.get(key));
  }

  /** Takes out the first step. */
  next(): Flush | undefined {
    return this.#flushes.shift();
  }

  /** Takes out all steps as one. */
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

const nothing = ({ all, changes }: Flush) => !all && changes.size === 0;

function put({ all, changes }: Flush, key: string, resource: Resource | undefined): void {
  if (!all) changes.set(key, resource);
  else if (resource) all.set(key, resource);
  else all.delete(key);
}
