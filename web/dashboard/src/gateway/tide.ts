import type { Store, Watches, WatchSpec } from '@watchtide/client';
import { parse } from '@watchtide/client/digits';
import { type Pool, pool, type Use } from '@watchtide/client/pool';
import { watchShared } from '@watchtide/client/shared';
import { useEffect, useState } from 'react';
import { onAnswered } from './answered';
import { base } from './base';
import { confirm, tag } from './session';
import { nameOf, sharedWorker } from './worker';

/** The table accepts any JSON. */
export type ResourceStore = Store<unknown>;

// A browser opens at most six connections to an origin that speaks HTTP/1.1, for all
// tabs together: they share one.
let tide: Watches | undefined;
let stores: Pool | undefined;

/**
 * Follows a watch while the component is mounted, or the part of it for which a filter is
 * true; nothing without a name. undefined in the first render.
 */
export function useStore(name: string | undefined, filter = ''): ResourceStore | undefined {
  const [store, setStore] = useState<ResourceStore>();
  useEffect(() => {
    if (name === undefined) return;
    const { store, release } = used(filter === '' ? name : { watch: name, filter });
    setStore(store);
    const unsubscribe = store.subscribe(({ error }) => {
      if (error) verify();
    });
    return () => {
      unsubscribe();
      setStore(undefined);
      release();
    };
  }, [name, filter]);
  return store;
}

/** Reports whether the whole of a watch is followed. */
export const isFollowed = (name: string): boolean => stores?.follows(name) ?? false;

// A store that is refused may be another user's by now.
function verify(): void {
  confirm().catch(() => {}); // the next request reports that the gateway does not answer
}

// Users have connections of their own.
function connect(): Watches {
  const user = tag();
  const name = nameOf(user);
  return watchShared(base, { worker: () => sharedWorker(name), name, parse, tag: user ?? null });
}

onAnswered(() => tide?.hurry());

// A watch stays followed for a while, in case the user comes back to its page, but not those of
// many pages: one stream has room for about twenty.
function used(spec: WatchSpec): Use {
  tide ??= connect();
  stores ??= pool(tide, { lingerMs: 10_000, maxLingering: 4 });
  return stores.use(spec);
}
