import type { Resource } from '@watchtide/client';
import { useEffect, useRef, useState } from 'react';
import { type Change, changeOf, maxChanges } from './changes';

/** Returns the last changes of a resource since the component was mounted, the newest first. */
export function useChanges(resource: Resource | undefined, loaded: boolean): readonly Change[] {
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const last = useRef<{ resource: Resource | undefined }>(undefined); // undefined before the first one
  useEffect(() => {
    if (!loaded) return;
    const before = last.current;
    last.current = { resource };
    const change = before && changeOf(before.resource, resource, Date.now());
    if (change) setChanges((changes) => [change, ...changes].slice(0, maxChanges));
  }, [resource, loaded]);
  return changes;
}
