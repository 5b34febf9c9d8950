import type { Resource } from '@watchtide/client';
import { type Difference, diff } from './diff';

/** A change of a resource while its detail is open. */
export interface Change {
  readonly kind: 'changed' | 'created' | 'deleted';
  /** When it was shown, in ms as of Date.now. */
  readonly at: number;
  /** Of the resource after the change; empty if it was deleted. */
  readonly revision: string;
  readonly differences: readonly Difference[];
}

export const maxChanges = 20;

/** Returns the change between two states of a resource (undefined: it does not exist), or undefined for none. */
export function changeOf(before: Resource | undefined, after: Resource | undefined, at: number): Change | undefined {
  if (!after) return before && { kind: 'deleted', at, revision: '', differences: [] };
  if (!before) return { kind: 'created', at, revision: after.revision, differences: [] };
  const differences = diff(before.value, after.value);
  if (before.revision === after.revision && differences.length === 0) return undefined; // unchanged, but sent again in a snapshot
  return { kind: 'changed', at, revision: after.revision, differences };
}
