import type { Resource } from '@watchtide/client';
import { diff, type Difference } from './diff';

/** How a resource became another while somebody looked at it. */
export interface Change {
  readonly kind: 'changed' | 'created' | 'deleted';
  /** When it was shown, in ms as of Date.now. */
  readonly at: number;
  /** Of the resource after it; empty where it was deleted. */
  readonly revision: string;
  readonly differences: readonly Difference[];
}

export const mostChanges = 20;

/** The change from one state of a resource to the next, undefined where it is not there; or undefined for none. */
export function changeOf(before: Resource | undefined, after: Resource | undefined, at: number): Change | undefined {
  if (!after) return before && { kind: 'deleted', at, revision: '', differences: [] };
  if (!before) return { kind: 'created', at, revision: after.revision, differences: [] };
  const differences = diff(before.value, after.value);
  if (before.revision === after.revision && differences.length === 0) return undefined; // the same, in another snapshot
  return { kind: 'changed', at, revision: after.revision, differences };
}
