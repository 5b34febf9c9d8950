import { useEffect, useState } from 'react';
import type { Store } from '@watchtide/client';
import { watchShared } from '@watchtide/client/shared';
import { base } from './base';
import { parse } from './digits';
import { sharedWorker } from './worker';

/** What the table shows of a resource is any JSON. */
export type ResourceStore = Store<unknown>;

// Who goes from one page to the next and back shall find the watch still followed.
const lingerMs = 10_000;

// But who goes through many shall not follow them all: one stream has room for some
// twenty.
const mostLingering = 4;

// A browser opens six connections to an origin that speaks HTTP/1.1, for all of its
// tabs together: they share one.
const tide = watchShared<Record<string, unknown>>(base, { worker: sharedWorker, parse });
const users = new Map<string, number>();
const lingering = new Map<ReturnType<typeof setTimeout>, string>(); // the first to go comes first

/** Follows a watch for as long as the component is shown; undefined at its first rendering. */
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
  if (lingering.size > mostLingering) end(first!);
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
