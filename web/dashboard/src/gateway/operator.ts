import { useSyncExternalStore } from 'react';
import { type Answer, poll } from './answer';
import type { Client } from './contract';

// The configuration may change, and with it who is an operator.
const everyMs = 15_000;
const unansweredMs = 2_000;

let operator: boolean | undefined;
let answered = false;
let stop: (() => void) | undefined;
const listeners = new Set<() => void>();

/**
 * Reports whether the gateway answers the paths for operators to this user, at this address; undefined: it has not
 * answered yet. A page of theirs asks for nothing before that, so that others cause no refused requests.
 */
export const useOperator = (): boolean | undefined => useSyncExternalStore(subscribe, () => operator);

// All components share one answer, which is kept while none is shown.
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  stop ??= poll<Client>('v1/client', () => (answered ? everyMs : unansweredMs), tell);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    stop?.();
    stop = undefined;
  };
}

// Without an answer, the last one counts; without any, the user sees the pages for everybody.
function tell({ data }: Partial<Answer<Client>>): void {
  answered ||= data !== undefined;
  const next = data?.operator ?? operator ?? false;
  if (next === operator) return;
  operator = next;
  for (const listener of listeners) listener();
}

/** Returns the same as useOperator, once the gateway has answered. */
export function isOperator(): Promise<boolean> {
  return new Promise((resolve) => {
    if (operator !== undefined) return resolve(operator);
    const end = subscribe(() => {
      end();
      resolve(operator ?? false);
    });
  });
}
