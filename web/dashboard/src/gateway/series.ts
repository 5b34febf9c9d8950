import type { Series } from '@watchtide/protocol';
import { useEffect, useState } from 'react';
import { type Answer, poll } from './answer';
import { merge, pathOf, type Step } from './merge';
import { isOperator } from './operator';
import { tag } from './session';

const everyMs: Readonly<Record<Step, number>> = { 1: 1000, 10: 5000 };

// The configuration may change, and the watch may come to be.
const deniedMs = 15_000;

/** Series as the page knows them; denied: they are not for this user, or not served at all. */
export interface Known extends Answer<Series> {
  readonly denied: boolean;
}

const nothing: Known = { data: undefined, at: 0, error: '', status: 0, denied: false };

/** Returns the figures of one watch or of all (''), and keeps them up to date. Only operators get any. */
export function useSeries(step: Step, watch = ''): Known {
  const [known, setKnown] = useState(nothing);
  useEffect(() => {
    setKnown(nothing);
    return followSeries(step, watch, setKnown);
  }, [step, watch]);
  return known;
}

/** Asks for series until the returned function is called. tell is called with what is known. */
export function followSeries(step: Step, watch: string, tell: (known: Known) => void): () => void {
  let known = nothing;
  let ended = false;
  let stop = () => {};
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deny = (status: number) => {
    stop();
    known = { ...nothing, denied: true, status };
    timer = setTimeout(begin, deniedMs);
    tell(known);
  };
  const told = (change: Partial<Answer<Series>>) => {
    if (change.status === 403 || change.status === 404) return deny(change.status);
    known = { ...known, ...change, data: change.data ? merge(known.data, change.data) : known.data, denied: false };
    tell(known);
  };
  const begin = async () => {
    const is = await isOperator();
    if (ended) return;
    if (!is) return deny(tag() === undefined ? 404 : 403);
    stop = poll<Series>(() => pathOf(step, watch, known.data), everyMs[step], told);
  };
  void begin();
  return () => {
    ended = true;
    clearTimeout(timer);
    stop();
  };
}
