import type { ListWatchesResponse, Watch } from '@watchtide/protocol';
import { useMemo } from 'react';
import { useAnswer } from '../gateway/answer';

/** When each source is tried next, in ms as of Date.now. */
export type NextAttempts = ReadonlyMap<string, number>;

/** Returns when sources are tried next. The gateway is asked only while one of them is not connected. */
export function useNextAttempts(sources: ReadonlyArray<{ connected: number; watches: number }>): NextAttempts {
  const away = sources.some(({ connected, watches }) => connected < watches);
  const watches = useAnswer<ListWatchesResponse>(away ? 'v1/watches' : '', 1000).data?.watches;
  return useMemo(() => nextAttempts(watches ?? []), [watches]);
}

/** Returns the earliest attempt for each source that has one ahead. */
export function nextAttempts(watches: readonly Watch[]): NextAttempts {
  const next = new Map<string, number>();
  for (const { source, upstream } of watches) {
    const at = Date.parse(upstream.next_attempt_at ?? '');
    if (at < (next.get(source) ?? Number.POSITIVE_INFINITY)) next.set(source, at);
  }
  return next;
}
