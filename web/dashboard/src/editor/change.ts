import { mapKey, type View } from '@watchtide/client';
import { useEffect, useState } from 'react';
import { isFollowed, useStore } from '../gateway/tide';
import type { Target } from './resource';

/** How a resource changed since it was loaded, according to the stream; and its revision, unless it was deleted. */
export interface Change {
  readonly what: '' | 'created' | 'changed' | 'deleted';
  readonly revision: string;
}

const none: Change = { what: '', revision: '' };

/** Follows a resource that was loaded at a revision (undefined: it did not exist) while the component is mounted. */
export function useChange({ watch, key, key_encoding }: Target, loaded: string | undefined): Change {
  // A large watch may be followed in part only: then the gateway alone notices a conflict.
  const [followed] = useState(() => isFollowed(watch));
  const store = useStore(followed ? watch : undefined);
  const [change, setChange] = useState(none);
  useEffect(() => {
    setChange(none);
    const place = mapKey({ key, ...(key_encoding && { key_encoding }) });
    return store?.subscribe((view) => {
      const now = changeSince(loaded, view.resources.get(place)?.revision, view);
      setChange((before) => (before.what === now.what && before.revision === now.revision ? before : now));
    });
  }, [store, key, key_encoding, loaded]);
  return change;
}

/** Compares the revision that was loaded with that in a view. */
export function changeSince(loaded: string | undefined, revision: string | undefined, view: Pick<View, 'revision'>): Change {
  if (view.revision === '') return none;
  if (loaded === undefined) return revision === undefined ? none : { what: 'created', revision };
  // The stream may be behind the loaded revision.
  if (revision === undefined) return later(view.revision, loaded) ? { what: 'deleted', revision: '' } : none;
  return later(revision, loaded) ? { what: 'changed', revision } : none;
}

const later = (a: string, b: string) => BigInt(a) > BigInt(b);
