import type { LiveWindow } from '@watchtide/client/window';
import type { Watch } from '@watchtide/protocol';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { at } from '../gateway/base';
import { refusal } from '../gateway/refusal';
import { ask } from '../gateway/session';
import { type ResourceStore, useStore, useWindow } from '../gateway/tide';
import { split } from '../query/cel';
import type { Query } from '../query/query';
import type { Sort } from './order';
import { useVisibleCount } from './useVisibleCount';
import { beginningOf, sortsByGateway } from './windowModel';

/** Where the rows of a table come from: a store that has all of them, or else a window of the watch. */
export interface Source {
  readonly store: ResourceStore | undefined;
  readonly window: LiveWindow | undefined;
  /** What is left for the page to evaluate. */
  readonly query: Query;
  /** The expression that the gateway evaluates; empty if the page has the whole watch, or a window of all of it. */
  readonly cel: string;
  /** The rows of a former query are shown until those of this one are loaded. */
  readonly searching: boolean;
  /** Why the gateway does not evaluate the query although the watch is large. */
  readonly refusal: string;
}

/** What of a source depends on the table. */
export interface Wanted {
  readonly sort: Sort;
  readonly prefix: string;
  /** All keys are needed. */
  readonly whole: boolean;
}

/** A watch with more resources, or more bytes, is sorted and filtered by the gateway. */
export const largeCount = 20_000;
export const largeBytes = 32 << 20;

// A view is not asked for while the query is being typed.
const typingMs = 120;

// From a failure that is not for good to the next attempt.
const againMs = 5_000;

type Followed = Pick<Source, 'store' | 'window' | 'cel'>;

/**
 * Follows the watch, or, once it is large, a window of what a query selects. Where the gateway cannot sort or select like
 * that, it is the part of the watch that the gateway can select. undefined while it is not known which of them.
 */
export function useSource(
  watch: string,
  query: Query,
  facts: Watch | undefined,
  listed: boolean,
  { sort, prefix, whole: all }: Wanted,
): Source | undefined {
  const { cel, rest } = useMemo(() => split(query), [query]);
  const last = useRef<Followed>(undefined);
  const count = useVisibleCount(watch, facts);
  const known = listed && count !== undefined;
  const large = useLarge(count ?? 0, facts?.bytes ?? 0, last.current);
  const verdict = useVerdict(watch, known && large ? cel : '');
  const decided = verdict.cel === cel;
  const filter = decided ? verdict.accepted : '';
  const undecided = cel !== '' && (!known || (large && !decided));
  const inWindow = last.current?.window !== undefined;
  const windowed = known && large && !all && rest.length === 0 && sortsByGateway(sort) && (undecided ? inWindow : filter === cel);

  const view = useStore(filter === '' || windowed ? undefined : watch, filter);
  const viewed = useLoaded(filter === '' ? undefined : view);
  const keepsWhole = last.current?.store !== undefined && last.current.cel === '' && !viewed;
  const whole = useStore(known && !windowed && (keepsWhole || (filter === '' && !undecided)) ? watch : undefined);
  const loaded = useLoaded(whole) || viewed;
  const window = useWindow(windowed || (inWindow && !loaded) ? watch : undefined, beginningOf({ sort, filter, prefix }));
  const opened = useLoaded(window);

  const store = inWindow && !loaded ? undefined : sourceOf(filter, viewed ? view : undefined, undecided ? undefined : whole);
  const moved = opened || last.current?.store === undefined ? window : undefined;
  const now = !windowed ? store : moved && { store: undefined, window: moved, cel: undecided ? last.current!.cel : filter };
  if (now) last.current = now;
  const shown = now ?? last.current ?? (filter !== '' && view ? { store: view, window: undefined, cel: filter } : undefined);
  if (!shown) return undefined;
  const exact = shown.cel !== '' && shown.cel === cel;
  return {
    ...shown,
    query: exact ? rest : query,
    searching: (shown.cel !== '' && !exact) || (inWindow && (undecided || !windowed)),
    refusal: decided && large ? verdict.refusal : '',
  };
}

function sourceOf(filter: string, view: ResourceStore | undefined, whole: ResourceStore | undefined): Followed | undefined {
  if (filter !== '') return view && { store: view, window: undefined, cel: filter };
  return whole && { store: whole, window: undefined, cel: '' };
}

// Once it is large it stays so, or a watch of about that size would change back and forth.
function useLarge(count: number, bytes: number, shown: Followed | undefined): boolean {
  const large = useRef(false);
  const loaded = shown?.cel === '' ? (shown.store?.resources.size ?? 0) : 0;
  if (count > largeCount || bytes > largeBytes || loaded > largeCount) large.current = true;
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

// Reports whether a store, or a window, has something to show, or is refused. It is subscribed to once, since a window that was
// closed cannot be.
function useLoaded(live: ResourceStore | LiveWindow | undefined): boolean {
  return useSyncExternalStore(
    useCallback((changed) => live?.subscribe(changed) ?? (() => {}), [live]),
    () => live !== undefined && (live.view.revision !== '' || live.view.error !== undefined),
  );
}
