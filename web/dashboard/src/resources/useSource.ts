import type { LiveWindow } from '@watchtide/client/window';
import type { Watch } from '@watchtide/protocol';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { at } from '../gateway/base';
import { refusal } from '../gateway/refusal';
import { ask } from '../gateway/session';
import { type ResourceStore, useStore, useWindow } from '../gateway/tide';
import { split } from '../query/cel';
import type { Query, Term } from '../query/query';
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
  /** The order of the rows: another one than is wanted where the gateway sorts, and cannot sort like that. */
  readonly sort: Sort;
  /** The rows of a former query are shown until those of this one are loaded. */
  readonly searching: boolean;
  /** Why the gateway does not evaluate the query although the watch is large. */
  readonly refusal: string;
  /** How many resources would have to be loaded for what is wanted, if they are too many; otherwise 0. */
  readonly tooMany: number;
}

/** What of a source depends on the table. */
export interface Wanted {
  readonly sort: Sort;
  readonly prefix: string;
  /** All keys are needed. */
  readonly whole: boolean;
  /** The columns in which the gateway searches for texts; undefined until they are known. */
  readonly searched: readonly string[] | undefined;
}

/** A watch with more resources, or more bytes, is sorted and filtered by the gateway. */
export const largeCount = 20_000;
export const largeBytes = 32 << 20;

/** More resources, or a watch of more bytes, are never loaded. */
export const mostCount = 200_000;
export const mostBytes = 256 << 20;

// A view is not asked for while the query is being typed.
const typingMs = 120;

// From a failure that is not for good to the next attempt.
const againMs = 5_000;

type Followed = Pick<Source, 'store' | 'window' | 'cel' | 'sort'>;

const byKey: Sort = { column: 'key', descending: false };

const isText = ({ kind }: Term) => kind === 'text';

/**
 * Follows the watch, or, once it is large, a window of what a query selects. Where the gateway cannot sort or select like
 * that, it is the part of the watch that the gateway can select, unless that is too large to be loaded. undefined while it is not
 * known which of them.
 */
export function useSource(
  watch: string,
  query: Query,
  facts: Watch | undefined,
  listed: boolean,
  { sort, prefix, whole: all, searched }: Wanted,
): Source | undefined {
  const last = useRef<Followed>(undefined);
  const count = useVisibleCount(watch, facts);
  const known = listed && count !== undefined;
  const large = useLarge(count ?? 0, facts?.bytes ?? 0, last.current);
  const columns = large ? searched : undefined;
  const { cel, rest } = useMemo(() => split(query, columns), [query, columns]);
  const unready = large && !columns && query.some(isText); // the first rows show which columns there are
  const verdict = useVerdict(watch, known && large ? cel : '');
  const decided = verdict.cel === cel;
  const filter = decided ? verdict.accepted : '';
  const undecided = cel !== '' && (!known || (large && !decided));
  const inWindow = last.current?.window !== undefined;

  const isComplete = filter === cel && rest.length === 0;
  const needed = all || !isComplete || !sortsByGateway(sort); // more than a window
  const size = filter === '' ? (count ?? 0) : verdict.count;
  const isLoaded = last.current?.store !== undefined && last.current.cel === filter;
  const isTooLarge = size > mostCount || (filter === '' && (facts?.bytes ?? 0) > mostBytes);
  const tooMany = known && large && needed && !undecided && !unready && !isLoaded && isTooLarge ? size : 0;
  const windowed = known && large && (undecided ? inWindow && !all && sortsByGateway(sort) : unready || tooMany > 0 || !needed);

  const view = useStore(filter === '' || windowed ? undefined : watch, filter);
  const viewed = useLoaded(filter === '' ? undefined : view);
  const keepsWhole = last.current?.store !== undefined && last.current.cel === '' && !viewed;
  const whole = useStore(known && !windowed && (keepsWhole || (filter === '' && !undecided)) ? watch : undefined);
  const loaded = useLoaded(whole) || viewed;
  const windowSort = sortsByGateway(sort) ? sort : byKey;
  const window = useWindow(windowed || (inWindow && !loaded) ? watch : undefined, beginningOf({ sort: windowSort, filter, prefix }));
  const opened = useLoaded(window);

  const store = inWindow && !loaded ? undefined : sourceOf(filter, viewed ? view : undefined, undecided ? undefined : whole);
  const moved = opened || last.current?.store === undefined ? window : undefined;
  const now = !windowed ? store && { ...store, sort } : moved && followedBy(moved, undecided ? last.current!.cel : filter, windowSort);
  if (now) last.current = now;
  const shown = now ?? last.current ?? (filter !== '' && view ? { store: view, window: undefined, cel: filter, sort } : undefined);
  if (!shown) return undefined;
  const exact = shown.cel !== '' && shown.cel === cel;
  return {
    ...shown,
    sort: shown.window ? shown.sort : sort,
    query: exact ? rest : query,
    searching: unready || (shown.cel !== '' && !exact) || (inWindow && (undecided || !windowed)),
    refusal: large && decided && !unready ? verdict.refusal || (rest.length > 0 ? tooLong : '') : '',
    tooMany,
  };
}

const tooLong = 'as an expression, it is longer than 2 KiB';

function sourceOf(filter: string, view: ResourceStore | undefined, whole: ResourceStore | undefined): Omit<Followed, 'sort'> | undefined {
  if (filter !== '') return view && { store: view, window: undefined, cel: filter };
  return whole && { store: whole, window: undefined, cel: '' };
}

const followedBy = (window: LiveWindow, cel: string, sort: Sort): Followed => ({ store: undefined, window, cel, sort });

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
  /** How many resources match. */
  readonly count: number;
  readonly refusal: string;
  /** Whether the gateway may take it later: it did not answer, or had too much to do. */
  readonly again: boolean;
}

const none: Verdict = { cel: '', accepted: '', count: 0, refusal: '', again: false };

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
    if (!ok) return { ...none, cel, refusal: await refusal(response), again: status === 429 || status >= 500 };
    const { count = 0 } = (await response.json()) as { count?: number };
    return { ...none, cel, accepted: cel, count };
  } catch (error) {
    signal.throwIfAborted();
    return { ...none, cel, refusal: error instanceof Error ? error.message : String(error), again: true };
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
