import { useEffect, useId, useSyncExternalStore } from 'react';

/** A reason why the displayed data may differ from the upstream. */
export interface Trouble {
  /** The name of a watch, or 'The gateway'. */
  readonly what: string;
  readonly state: 'stale' | 'offline' | 'closed' | 'priming' | 'resyncing' | 'connecting' | 'paused';
  /** When it began, in ms as of Date.now. */
  readonly since: number;
  /** A human-readable sentence; may be empty. */
  readonly reason: string;
}

// The reports of the mounted components, by component.
const reported = new Map<string, readonly Trouble[]>();
const listeners = new Set<() => void>();
let all: readonly Trouble[] = [];

/** Reports troubles to the banner for as long as the component is mounted. */
export function useTroubles(troubles: readonly Trouble[]): void {
  const id = useId();
  const text = JSON.stringify(troubles); // equal reports count once
  useEffect(() => report(id, JSON.parse(text) as Trouble[]), [id, text]);
  useEffect(() => () => report(id, []), [id]);
}

/** Returns all reported troubles, without duplicates. */
export function useReported(): readonly Trouble[] {
  return useSyncExternalStore(subscribe, () => all);
}

function report(id: string, troubles: readonly Trouble[]): void {
  if (troubles.length > 0) reported.set(id, troubles);
  else if (!reported.delete(id)) return;
  const unique = new Map([...reported.values()].flat().map((trouble) => [`${trouble.what} ${trouble.state}`, trouble]));
  all = [...unique.values()];
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
