import { useEffect, useState } from 'react';
import type { Store } from '@watchtide/client';
import { watchShared } from '@watchtide/client/shared';
import { base } from './base';
import { parse } from './digits';
import { sharedWorker } from './worker';

/** The table accepts any JSON. */
export type ResourceStore = Store<unknown>;

// A watch stays followed for a while, in case the user comes back to its page.
const lingerMs = 10_000;

// A user who visits many pages must not follow all their watches: one stream has room
// for about twenty.
const maxLingering = 4;

// A browser opens at most six connections to an origin that speaks HTTP/1.1, for all
// tabs together: they share one.
const tide = watchShared<Record<string, unknown>>(base, { worker: sharedWorker, parse });
const users = new Map<string, number>();
const lingering = new Map<ReturnType<typeof setTimeout>, string>(); // the oldest first

/** Follows a watch while the component is mounted; undefined in the first render. */
export function useStore(name: string): ResourceStore | undefined {
  const [store, setStore] = useState<ResourceStore>();
  useEffect(() => {
    setStore(acquire(name));
    return () => {
      setStore(undefined);
      linger(name);
    };
  }, [name]);
  return store;
}

function acquire(name: string): ResourceStore {
  users.set(name, (users.get(name) ?? 0) + 1);
  return tide.add(name);
}

function linger(name: string): void {
  const timer = setTimeout(() => end(timer), lingerMs);
  lingering.set(timer, name);
  const [first] = lingering.keys();
  if (lingering.size > maxLingering) end(first!);
}

function end(timer: ReturnType<typeof setTimeout>): void {
  clearTimeout(timer);
  release(lingering.get(timer)!);
  lingering.delete(timer);
}

function release(name: string): void {
  const left = (users.get(name) ?? 1) - 1;
  if (left > 0) return void users.set(name, left);
  users.delete(name);
  tide.remove(name);
}
