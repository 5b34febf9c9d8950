import type { Store } from '@watchtide/client';
import type { Watch } from '@watchtide/protocol';
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { at } from '../gateway/base';
import { refusal } from '../gateway/refusal';
import { ask } from '../gateway/session';
import { type ResourceStore, useStore } from '../gateway/tide';
import { split } from '../query/cel';
import type { Query } from '../query/query';

/** Where the rows of a table come from. */
export interface Source {
  readonly store: ResourceStore;
  /** What is left for the page to evaluate. */
  readonly query: Query;
  /** The expression that the gateway evaluates; empty if the page has the whole watch. */
  readonly cel: string;
  /** The rows of a former query are shown until those of this one are loaded. */
  readonly searching: boolean;
  /** Why the gateway does not evaluate the query although the watch is large. */
  readonly refusal: string;
}

/** A watch with more resources, or more bytes, is filtered by the gateway. */
export const largeCount = 20_000;
export const largeBytes = 32 << 20;

// A view is not asked for while the query is being typed.
const typingMs = 120;

// From a failure that is not for good to the next attempt.
const againMs = 5_000;

/**
 * Follows the watch, or the part of it that a query selects once the watch is large.
 * undefined while it is not known which of them.
 */
export function useSource(watch: string, query: Query, facts: Watch | undefined, known: boolean): Source | undefined {
  const { cel, rest } = useMemo(() => split(query), [query]);
  const last = useRef<Pick<Source, 'store' | 'cel'>>(undefined);
  const large = useLarge(facts, last.current);
  const verdict = useVerdict(watch, known && large ? cel : '');
  const filter = verdict.cel === cel ? verdict.accepted : '';
  const view = useStore(filter === '' ? undefined : watch, filter);
  const viewed = useLoaded(filter === '' ? undefined : view);
  const undecided = cel !== '' && (!known || (large && verdict.cel !== cel));
  const keepsWhole = last.current?.cel === '' && !viewed;
  const whole = useStore(keepsWhole || (filter === '' && !undecided) ? watch : undefined);

  const now = sourceOf(filter, viewed ? view : undefined, undecided ? undefined : whole);
  if (now) last.current = now;
  const shown = now ?? last.current ?? (filter !== '' && view ? { store: view, cel: filter } : undefined);
  if (!shown) return undefined;
  const exact = shown.cel !== '' && shown.cel === cel;
  return {
    ...shown,
    query: exact ? rest : query,
    searching: shown.cel !== '' && !exact,
    refusal: verdict.cel === cel && large ? verdict.refusal : '',
  };
}

function sourceOf(filter: string, view: ResourceStore | undefined, whole: ResourceStore | undefined) {
  if (filter !== '') return view && { store: view, cel: filter };
  return whole && { store: whole, cel: '' };
}

// Once it is large it stays so, or a watch of about that size would change back and forth.
function useLarge(facts: Watch | undefined, shown: Pick<Source, 'store' | 'cel'> | undefined): boolean {
  const large = useRef(false);
  const loaded = shown?.cel === '' ? shown.store.resources.size : 0;
  if ((facts?.count ?? 0) > largeCount || (facts?.bytes ?? 0) > largeBytes || loaded > largeCount) large.current = true;
  return large.current;
}

/** The gateway's answer to an expression. */
interface Verdict {
  readonly cel: string;
  /** The same, or empty if it is refused. */
  readonly accepted: string;
  readonly refusal: string;
  /** Whether the gateway may take it later: it did not answer, or had too much to do. */
  readonly again: boolean;
}

const none: Verdict = { cel: '', accepted: '', refusal: '', again: false };

// Asks the gateway whether it takes an expression: a stream that is refused would end the other
// watches of its connection as well.
function useVerdict(watch: string, cel: string): Verdict {
  const [verdict, setVerdict] = useState(none);
  const typed = useRef(false);
  useEffect(() => {
    if (cel === '') return setVerdict(none);
    const delay = typed.current ? typingMs : 0; // none for the filter with which the page opens
    typed.current = true;
    const ended = new AbortController();
    const timer = setTimeout(() => {
      judge(watch, cel, ended.signal).then(setVerdict, () => {}); // fails only if it was aborted
    }, delay);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [watch, cel]);
  useEffect(() => {
    if (!verdict.again || verdict.cel !== cel) return;
    const ended = new AbortController();
    const timer = setTimeout(() => judge(watch, cel, ended.signal).then(setVerdict, () => {}), againMs);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [watch, cel, verdict]);
  return verdict;
}

async function judge(watch: string, cel: string, signal: AbortSignal): Promise<Verdict> {
  const url = at(`v1/watches/${encodeURIComponent(watch)}/resources`);
  url.search = String(new URLSearchParams({ filter: cel, page_size: '1' }));
  try {
    const response = await ask(url, { signal });
    const { ok, status } = response;
    if (!ok) return { cel, accepted: '', refusal: await refusal(response), again: status === 429 || status >= 500 };
    await response.body?.cancel();
    return { ...none, cel, accepted: cel };
  } catch (error) {
    signal.throwIfAborted();
    return { cel, accepted: '', refusal: error instanceof Error ? error.message : String(error), again: true };
  }
}

// Reports whether a store has something to show, or is refused.
function useLoaded(store: Store | undefined): boolean {
  return useSyncExternalStore(
    (changed) => store?.subscribe(changed) ?? (() => {}),
    () => store !== undefined && (store.view.revision !== '' || store.view.error !== undefined),
  );
}
