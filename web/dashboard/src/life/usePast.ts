import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { type Known, Past } from './past';

// Between two attempts.
const longestMs = 30_000;

interface Followed extends Known {
  readonly older: () => void;
}

/**
 * Returns the past of a watch, or of one resource. It is loaded again whenever news is another text, such as the
 * newest revision, unless it is paused; and after a failure, for a watch without news.
 */
export function usePast(watch: string, news: string, paused: boolean, key?: string, encoding?: string): Followed {
  const past = useMemo(
    () => new Past(watch, key === undefined ? undefined : { text: key, ...(encoding && { encoding }) }),
    [watch, key, encoding],
  );
  const known = useSyncExternalStore(past.subscribe, past.snapshot);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the reason to look
  useEffect(() => {
    if (!paused) void past.newer();
  }, [past, news, paused]);
  const { error, failures } = known;
  useEffect(() => {
    if (error === '' || paused) return;
    const timer = setTimeout(() => void past.newer(), Math.min(500 * 2 ** failures, longestMs));
    return () => clearTimeout(timer);
  }, [past, paused, error, failures]);
  return useMemo(() => ({ ...known, older: () => void past.older() }), [known, past]);
}
