import { useEffect, useState } from 'react';
import type { Trouble } from './troubles';

// Every page connects for a moment when it is opened, which is not worth a warning.
const delayMs = 700;
const brief = new Set<Trouble['state']>(['connecting', 'priming']);

/** Returns the troubles without those that may be over in a moment. */
export function useDelayed(troubles: readonly Trouble[]): readonly Trouble[] {
  const now = JSON.stringify(troubles.filter(({ state }) => brief.has(state)).map(({ what }) => what));
  const [before, setBefore] = useState('[]');
  useEffect(() => {
    const timer = setTimeout(setBefore, delayMs, now);
    return () => clearTimeout(timer);
  }, [now]);
  const lasted = new Set(JSON.parse(before) as string[]);
  return troubles.filter(({ what, state }) => !brief.has(state) || lasted.has(what));
}
