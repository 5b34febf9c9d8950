import type { Store, Watches, WatchSpec } from '@watchtide/client';
import { type CountsView, watchCounts } from '@watchtide/client/counts';
import { parse } from '@watchtide/client/digits';
import { type Pool, pool, type Use } from '@watchtide/client/pool';
import { watchShared } from '@watchtide/client/shared';
import { type LiveWindow, type WindowOptions, watchWindow } from '@watchtide/client/window';
import { useEffect, useRef, useState } from 'react';
import { base } from './base';
import { onHurry } from './hurry';
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
 * true, or whose keys have a prefix; nothing without a name. undefined in the first render.
 */
export function useStore(name: string | undefined, filter = '', prefix = ''): ResourceStore | undefined {
  const [store, setStore] = useState<ResourceStore>();
  useEffect(() => {
    if (name === undefined) return;
    const { store, release } = used(filter === '' && prefix === '' ? name : { watch: name, filter, prefix });
    setStore(store);
    const unsubscribe = store.subscribe(({ error }) => {
      if (error) verify();
    });
    return () => {
      unsubscribe();
      setStore(undefined);
      release();
    };
  }, [name, filter, prefix]);
  return store;
}

/** Follows a window of a watch while the component is mounted, from a beginning on; nothing without a name. undefined in the first render. */
export function useWindow(name: string | undefined, beginning: Omit<WindowOptions, 'watch'>): LiveWindow | undefined {
  const [window, setWindow] = useState<LiveWindow>();
  const begin = useRef(beginning);
  begin.current = beginning;
  useEffect(() => {
    if (name === undefined) return;
    const window = watchWindow(connected(), { ...begin.current, watch: name });
    setWindow(window);
    window.subscribe(({ error }) => {
      if (error) verify();
    });
    return () => {
      setWindow(undefined);
      window.close();
    };
  }, [name]);
  return window;
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

// Nobody reads numbers that change more often.
const readableMs = 250;

/**
 * Follows counts of a watch while the component is mounted; nothing without a name. Without `by`, the watch is a count that the
 * configuration declares. undefined until they are there.
 */
export function useCounts(
  name: string | undefined,
  { by, filter = '', prefix = '' }: Partial<Record<'by' | 'filter' | 'prefix', string>> = {},
): CountsView | undefined {
  const [shown, setShown] = useState<{ readonly by: string | undefined; readonly view: CountsView }>();
  useEffect(() => {
    if (name === undefined) return setShown(undefined);
    const counts = watchCounts(connected(), by === undefined ? { watch: name } : { watch: name, by, filter, prefix });
    let timer: ReturnType<typeof setTimeout> | undefined;
    let waitMs = 0; // none for the first ones
    const show = () => {
      timer = undefined;
      if (counts.view.revision === '') return;
      waitMs = readableMs;
      setShown({ by, view: counts.view });
    };
    counts.subscribe(() => (timer ??= setTimeout(show, waitMs)));
    return () => {
      clearTimeout(timer);
      counts.close();
    };
  }, [name, by, filter, prefix]);
  return shown && shown.by === by ? shown.view : undefined;
}

const connected = (): Watches => (tide ??= connect());

onHurry(() => tide?.hurry());

// A watch stays followed for a while, in case the user comes back to its page, but not those of
// many pages: one stream has room for about twenty.
function used(spec: WatchSpec): Use {
  stores ??= pool(connected(), { lingerMs: 10_000, maxLingering: 4 });
  return stores.use(spec);
}
