import type { Store, Watches } from '@watchtide/client';
import { watchShared } from '@watchtide/client/shared';
import { useEffect, useState } from 'react';
import { base } from './base';
import { parse } from './digits';
import { confirm, tag } from './session';
import { nameOf, sharedWorker } from './worker';

/** The table accepts any JSON. */
export type ResourceStore = Store<unknown>;

// A watch stays followed for a while, in case the user comes back to its page.
const lingerMs = 10_000;

// A user who visits many pages must not follow all their watches: one stream has room
// for about twenty.
const maxLingering = 4;

// A browser opens at most six connections to an origin that speaks HTTP/1.1, for all
// tabs together: they share one.
let tide: Watches | undefined;
const users = new Map<string, number>(); // by the id of what they follow
const lingering = new Map<ReturnType<typeof setTimeout>, Followed>(); // the oldest first

/** A watch, or the part of it for which a filter is true. */
interface Followed {
  readonly name: string;
  readonly filter: string;
}

const idOf = ({ name, filter }: Followed) => JSON.stringify([name, filter]);
const specOf = ({ name, filter }: Followed) => (filter === '' ? name : { watch: name, filter });

/**
 * Follows a watch while the component is mounted, or the part of it for which a filter is
 * true; nothing without a name. undefined in the first render.
 */
export function useStore(name: string | undefined, filter = ''): ResourceStore | undefined {
  const [store, setStore] = useState<ResourceStore>();
  useEffect(() => {
    if (name === undefined) return;
    const followed: Followed = { name, filter };
    const store = acquire(followed);
    setStore(store);
    const unsubscribe = store.subscribe(({ error }) => {
      if (error) verify();
    });
    return () => {
      unsubscribe();
      setStore(undefined);
      linger(followed);
    };
  }, [name, filter]);
  return store;
}

/** Reports whether the whole of a watch is followed. */
export const isFollowed = (name: string): boolean => users.has(idOf({ name, filter: '' }));

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

/** The gateway has answered: a lost connection is tried again soon. */
export const hurry = (): void => tide?.hurry();

function acquire(followed: Followed): ResourceStore {
  const id = idOf(followed);
  users.set(id, (users.get(id) ?? 0) + 1);
  return (tide ??= connect()).add(specOf(followed));
}

function linger(followed: Followed): void {
  const timer = setTimeout(() => end(timer), lingerMs);
  lingering.set(timer, followed);
  const [first] = lingering.keys();
  if (lingering.size > maxLingering) end(first!);
}

function end(timer: ReturnType<typeof setTimeout>): void {
  clearTimeout(timer);
  release(lingering.get(timer)!);
  lingering.delete(timer);
}

function release(followed: Followed): void {
  const id = idOf(followed);
  const left = (users.get(id) ?? 1) - 1;
  if (left > 0) return void users.set(id, left);
  users.delete(id);
  tide?.remove(specOf(followed));
}
