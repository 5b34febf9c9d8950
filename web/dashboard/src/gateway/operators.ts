import { useTroubles } from '../app/troubles';
import { type Answer, useAnswer } from './answer';
import { useOperator } from './operator';
import { useWho } from './session';
import { useSilence } from './watches';

/**
 * Polls a path for operators. For others there is no request, which would be refused, but the answer
 * that it would get: 403 where users sign in, or else 404.
 */
export function useOperators<T>(path: string, everyMs: number): Answer<T> {
  const operator = useOperator();
  const who = useWho();
  const answer = useAnswer<T>(operator ? path : '', everyMs);
  const silence = useSilence(answer, everyMs);
  const refused = answer.status === 403 || answer.status === 404;
  useTroubles(refused ? [] : silence);
  if (operator !== false) return answer;
  return { data: undefined, at: 0, error: '', status: who.state === 'known' && who.hasSessions ? 403 : 404 };
}
