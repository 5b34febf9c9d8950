import { expect } from 'vitest';
import type { Changes } from '../src/replica.js';
import type { Store } from '../src/store.js';
import type { View } from '../src/view.js';
import type { Upstream } from './upstream.js';

/** Compares what a store shows, of one watch or of the keys with a prefix, with the model at every call. */
export class Seen {
  head = 0; // of the watch when the stream began
  at = -1; // the version that was shown last
  shown = new Map<string, unknown>();
  readonly faults: unknown[] = [];

  constructor(
    readonly upstream: Upstream,
    readonly store: Store,
    private readonly prefix = '',
  ) {
    store.subscribe((...call) => {
      // A store does not report the errors of its listeners.
      try {
        this.#check(...call);
      } catch (error) {
        this.faults.push(error);
      }
    });
  }

  #check({ resources, state, revision }: View, { replaced, keys }: Changes) {
    const now = new Map([...resources].map(([key, { value }]) => [key, value]));
    if (revision !== '') this.at = this.#find(now, revision);
    if (!replaced) expect(differing(this.shown, now).filter((key) => !keys.has(key))).toEqual([]);
    if (state === 'in_sync') expect(this.at).toBeGreaterThanOrEqual(this.head);
    this.shown = now;
  }

  // Never half a transaction, and never back in time.
  #find(now: Map<string, unknown>, revision: string): number {
    const { upstream } = this;
    for (let i = Math.max(0, this.at); i < upstream.versions.length; i++) {
      if (String(upstream.versions[i]!.revision) === revision && differing(this.#values(i), now).length === 0) return i;
    }
    throw new Error(`shown: ${JSON.stringify([...now])} at ${revision}, which the upstream never was after version ${this.at}`);
  }

  #values(index: number): Map<string, unknown> {
    return new Map([...this.upstream.values(index)].filter(([key]) => key.startsWith(this.prefix)));
  }
}

const differing = (a: Map<string, unknown>, b: Map<string, unknown>) =>
  [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key) || a.has(key) !== b.has(key));
