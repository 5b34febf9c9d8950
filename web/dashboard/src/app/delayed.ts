import { useEffect, useState } from 'react';
import type { Trouble } from './troubles';

// Every page that opens says for a moment that it connects; nobody needs to read that.
const momentMs = 700;
const passing = new Set<Trouble['state']>(['connecting', 'priming']);

/** The troubles without those that may be over in a moment. */
export function useLasting(troubles: readonly Trouble[]): readonly Trouble[] {
  const now = JSON.stringify(troubles.filter(({ state }) => passing.has(state)).map(({ what }) => what));
  const [before, setBefore] = useState('[]');
  useEffect(() => {
    const timer = setTimeout(setBefore, momentMs, now);
    return () => clearTimeout(timer);
  }, [now]);
  const lasted = new Set(JSON.parse(before) as string[]);
  return troubles.filter(({ what, state }) => !passing.has(state) || lasted.has(what));
}
