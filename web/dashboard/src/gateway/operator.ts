import type { Client } from '@watchtide/protocol';
import { useSyncExternalStore } from 'react';
import { type Answer, poll } from './answer';

// The configuration may change, and with it who is an operator.
const everyMs = 15_000;
const unansweredMs = 2_000;

// undefined: not known, since the gateway has not answered yet.
let operator: boolean | undefined;
let asked = false; // at least once
let stop: (() => void) | undefined;
const listeners = new Set<() => void>();

/**
 * Reports whether the gateway answers the paths for operators to this user, at this address; undefined: it has not
 * answered yet. A page of theirs asks for nothing before that, so that others cause no refused requests.
 */
export const useOperator = (): boolean | undefined => useSyncExternalStore(subscribe, () => operator);

/** Returns the same, but false if the gateway was asked in vain: then the user sees the pages for everybody. */
export const useOperatorPages = (): boolean | undefined => useSyncExternalStore(subscribe, () => operator ?? (asked ? false : undefined));

// All components share one answer, which is kept while none is shown.
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  stop ??= poll<Client>('v1/client', () => (operator === undefined ? unansweredMs : everyMs), tell);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    stop?.();
    stop = undefined;
  };
}

// A refusal is an answer too: the paths for operators would be refused as well. While the gateway fails, the last answer counts.
function tell({ data, status }: Partial<Answer<Client>>): void {
  const refused = status === 401 || status === 403 || status === 404;
  const next = typeof data?.operator === 'boolean' ? data.operator : refused ? false : operator;
  const changed = next !== operator || (next === undefined && !asked);
  operator = next;
  asked = true;
  if (changed) for (const listener of listeners) listener();
}

/** Returns the same as useOperator, once the gateway has answered. */
export function isOperator(): Promise<boolean> {
  return new Promise((resolve) => {
    if (operator !== undefined) return resolve(operator);
    const end = subscribe(() => {
      if (operator === undefined) return;
      end();
      resolve(operator);
    });
  });
}
