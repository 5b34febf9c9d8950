import { useTroubles } from '../app/troubles';
import { type Answer, useAnswer } from './answer';
import type { Subscribers } from './contract';
import { useSilence } from './watches';

const everyMs = 2000;

/** Returns the subscribers of one watch or of all (''), and the state of the upstreams, updated every two seconds. */
export function useSubscribers(watch: string, limit: number): Answer<Subscribers> {
  const query = new URLSearchParams({ limit: String(limit), ...(watch && { watch }) });
  const answer = useAnswer<Subscribers>(`v1/subscribers?${query}`, everyMs);
  const silence = useSilence(answer, everyMs);
  useTroubles(isNotServed(answer) ? [] : silence);
  return answer;
}

/** Reports whether an answer is only for operators, or there is no such watch: see NotServed. */
export const isNotServed = ({ status }: Answer<Subscribers>): boolean => status === 404 || status === 403;
