import type { Subscribers } from '@watchtide/protocol';
import type { Answer } from './answer';
import { useOperators } from './operators';

/** The time between two answers. */
export const everyMs = 2000;

/** Which subscribers are wanted. Empty texts select all. */
export interface Selection {
  readonly watch: string;
  readonly search?: string;
  readonly application?: string;
  readonly network?: string;
  readonly transport?: string;
  readonly principal?: string;
  readonly client_id?: string;
  /** Their order: '' by lag, or since, the oldest first. */
  readonly sort?: string;
  /** The property by which they are grouped. */
  readonly group?: string;
  /** The next of the page before; '' or undefined for the first page. */
  readonly after?: string;
}

/** Returns the subscribers of one watch or of all (''), and the state of the upstreams, updated every two seconds. */
export function useSubscribers(selection: Selection, limit: number): Answer<Subscribers> {
  return useOperators<Subscribers>(pathOf(selection, limit), everyMs);
}

/** Returns the path of one page of the subscribers. */
export function pathOf(selection: Selection, limit: number): string {
  const named = Object.entries(selection).filter(([, value]) => value);
  const query = new URLSearchParams([['limit', String(limit)], ...(named as [string, string][])]);
  return `v1/subscribers?${query}`;
}

/** Reports whether an answer is only for operators, or there is no such watch: see NotServed. */
export const isNotServed = ({ status }: Answer<unknown>): boolean => status === 404 || status === 403;
