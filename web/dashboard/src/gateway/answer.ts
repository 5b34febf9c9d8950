import { useEffect, useState } from 'react';
import { at } from './base';
import { refusal } from './refusal';
import { ask } from './session';

/** The last response of the gateway, its time, and the error of the last request, if any. */
export interface Answer<T> {
  readonly data: T | undefined;
  /** When data arrived, in ms as of Date.now; 0 before the first. */
  readonly at: number;
  readonly error: string;
  /** The status of the last response; 0 if there was none. */
  readonly status: number;
}

const nothing = { data: undefined, at: 0, error: '', status: 0 };

// After this time without an answer, a request has failed.
const timeoutMs = 10_000;

/** Polls a path of the gateway, everyMs after the last response, while the tab is visible; nothing if the path is empty. */
export function useAnswer<T>(path: string, everyMs: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>(nothing);
  useEffect(() => {
    setAnswer(nothing);
    if (!path) return;
    return poll<T>(path, everyMs, (change) => setAnswer((before) => ({ ...before, ...change })));
  }, [path, everyMs]);
  return answer;
}

/** Polls until the returned function is called. The path, and the time until the next request, may be others for each. */
export function poll<T>(
  path: string | (() => string),
  everyMs: number | (() => number),
  tell: (change: Partial<Answer<T>>) => void,
): () => void {
  const ended = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asking = false;

  async function next(): Promise<void> {
    if (asking || document.hidden) return;
    asking = true;
    const change = await request<T>(typeof path === 'string' ? path : path(), ended.signal);
    asking = false;
    if (ended.signal.aborted) return;
    tell(change);
    if (ended.signal.aborted) return; // by tell
    clearTimeout(timer);
    timer = setTimeout(next, typeof everyMs === 'number' ? everyMs : everyMs());
  }
  document.addEventListener('visibilitychange', next);
  void next();
  return () => {
    ended.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', next);
  };
}

async function request<T>(path: string, ended: AbortSignal): Promise<Partial<Answer<T>>> {
  try {
    const response = await ask(at(path), { signal: AbortSignal.any([ended, AbortSignal.timeout(timeoutMs)]) });
    if (!response.ok) return { error: await refusal(response), status: response.status };
    return { data: (await response.json()) as T, at: Date.now(), error: '', status: 200 };
  } catch (error) {
    return { error: reasonOf(error), status: 0 };
  }
}

// A response that is not JSON is that of something in front of the gateway, such as the login of a proxy.
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'something else has answered in its place';
  return error instanceof Error ? error.message : String(error);
}
