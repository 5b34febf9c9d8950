import { useEffect, useRef, useState } from 'react';
import type { Resource } from '@watchtide/client';
import { changeOf, mostChanges, type Change } from './changes';

/** The last changes of a resource since the component is shown, the newest first. */
export function useChanges(resource: Resource | undefined, loaded: boolean): readonly Change[] {
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const last = useRef<{ resource: Resource | undefined }>(undefined); // undefined: not looked at yet
  useEffect(() => {
    if (!loaded) return;
    const before = last.current;
    last.current = { resource };
    const change = before && changeOf(before.resource, resource, Date.now());
    if (change) setChanges((changes) => [change, ...changes].slice(0, mostChanges));
  }, [resource, loaded]);
  return changes;
}
