import { useEffect, useState } from 'react';
import { mapKey, type View } from '@watchtide/client';
import { useStore } from '../gateway/tide';
import type { Target } from './resource';

/** What became of a resource since it was loaded, as far as the stream says; and its revision now, unless it is gone. */
export interface Change {
  readonly what: '' | 'created' | 'changed' | 'deleted';
  readonly revision: string;
}

const none: Change = { what: '', revision: '' };

/** Follows a resource that was loaded at a revision (undefined: that was not there) while the component is shown. */
export function useChange({ watch, key, key_encoding }: Target, loaded: string | undefined): Change {
  const store = useStore(watch);
  const [change, setChange] = useState(none);
  useEffect(() => {
    setChange(none);
    const place = mapKey({ key, ...(key_encoding && { key_encoding }) });
    return store?.subscribe((view) => {
      const now = changeSince(loaded, view.resources.get(place)?.revision, view);
      setChange((before) => before.what === now.what && before.revision === now.revision ? before : now);
    });
  }, [store, key, key_encoding, loaded]);
  return change;
}

/** What the difference is between what was loaded and what a view holds at `revision`. */
export function changeSince(loaded: string | undefined, revision: string | undefined, view: Pick<View, 'revision'>): Change {
  if (view.revision === '') return none;
  if (loaded === undefined) return revision === undefined ? none : { what: 'created', revision };
  // The stream may be a moment behind what was loaded.
  if (revision === undefined) return later(view.revision, loaded) ? { what: 'deleted', revision: '' } : none;
  return later(revision, loaded) ? { what: 'changed', revision } : none;
}

const later = (a: string, b: string) => BigInt(a) > BigInt(b);
