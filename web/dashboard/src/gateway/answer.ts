import { useEffect, useState } from 'react';
import { at } from './base';
import type { Problem } from './contract';

/** What the gateway last answered, when, and why the last request failed if it did. */
export interface Answer<T> {
  readonly data: T | undefined;
  /** When data came, in ms as of Date.now; 0 before the first. */
  readonly at: number;
  readonly error: string;
  /** The status of the refusal that error is about; 0 if there was no answer at all. */
  readonly status: number;
}

const nothing = { data: undefined, at: 0, error: '', status: 0 };

// A gateway that does not answer for so long is not there.
const patienceMs = 10_000;

/** Asks the gateway for a path again and again, everyMs after the last answer, while the tab is visible. */
export function useAnswer<T>(path: string, everyMs: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>(nothing);
  useEffect(() => {
    setAnswer(nothing);
    return poll<T>(path, everyMs, (change) => setAnswer((before) => ({ ...before, ...change })));
  }, [path, everyMs]);
  return answer;
}

/** Asks until the function that it returns is called. */
export function poll<T>(path: string, everyMs: number, tell: (change: Partial<Answer<T>>) => void): () => void {
  const ended = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asking = false;

  async function ask(): Promise<void> {
    if (asking || document.hidden) return;
    asking = true;
    const change = await request<T>(path, ended.signal);
    asking = false;
    if (ended.signal.aborted) return;
    tell(change);
    clearTimeout(timer);
    timer = setTimeout(ask, everyMs);
  }
  document.addEventListener('visibilitychange', ask);
  void ask();
  return () => {
    ended.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', ask);
  };
}

async function request<T>(path: string, ended: AbortSignal): Promise<Partial<Answer<T>>> {
  try {
    const response = await fetch(at(path), { signal: AbortSignal.any([ended, AbortSignal.timeout(patienceMs)]) });
    if (!response.ok) return { error: await refusal(response), status: response.status };
    return { data: await response.json() as T, at: Date.now(), error: '', status: 200 };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error), status: 0 };
  }
}

/** What a refusal says: the problem's detail, or at least the status. */
export async function refusal(response: Response): Promise<string> {
  const problem = await response.json().catch(() => undefined) as Partial<Problem> | undefined;
  return problem?.detail || problem?.title || `${response.status} ${response.statusText}`.trim();
}
