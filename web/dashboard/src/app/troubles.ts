import { useEffect, useId, useSyncExternalStore } from 'react';

/** Why something that is shown may not be what the upstream has. */
export interface Trouble {
  /** What it is about: the name of a watch, or 'the gateway'. */
  readonly what: string;
  readonly state: 'stale' | 'offline' | 'closed' | 'priming' | 'resyncing' | 'connecting' | 'paused';
  /** Since when, in ms as of Date.now. */
  readonly since: number;
  /** A sentence for a person; may be empty. */
  readonly reason: string;
}

// What the components that are shown have reported, by reporter.
const reported = new Map<string, readonly Trouble[]>();
const listeners = new Set<() => void>();
let all: readonly Trouble[] = [];

/** Reports what may be stale in what the component shows, for as long as it is shown. The banner says it. */
export function useTroubles(troubles: readonly Trouble[]): void {
  const id = useId();
  const text = JSON.stringify(troubles); // equal reports are one
  useEffect(() => report(id, JSON.parse(text) as Trouble[]), [id, text]);
  useEffect(() => () => report(id, []), [id]);
}

/** All that is reported, without repetition. */
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
