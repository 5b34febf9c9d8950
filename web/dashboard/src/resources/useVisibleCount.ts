import type { Watch } from '@watchtide/protocol';
import { useEffect, useState } from 'react';
import { at } from '../gateway/base';
import { ask } from '../gateway/session';

/**
 * Returns how many resources of a watch the user may see; undefined until that is known. The list of watches has no figures of a watch
 * of which the user may see only a part: the gateway is asked once. If it does not say, the watch is taken for a large one.
 */
export function useVisibleCount(watch: string, facts: Watch | undefined): number | undefined {
  const partial = facts?.partial ?? false;
  const [count, setCount] = useState<number>();
  useEffect(() => {
    if (!partial) return;
    const ended = new AbortController();
    countOf(watch, ended.signal).then(setCount, () => ended.signal.aborted || setCount(Infinity));
    return () => ended.abort();
  }, [watch, partial]);
  return partial ? count : (facts?.count ?? 0);
}

async function countOf(watch: string, signal: AbortSignal): Promise<number> {
  const url = at(`v1/watches/${encodeURIComponent(watch)}/resources`);
  url.search = 'page_size=1';
  const response = await ask(url, { signal });
  const { count } = (await response.json()) as { count?: number };
  return count ?? Infinity;
}
