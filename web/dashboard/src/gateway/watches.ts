import type { ListWatchesResponse } from '@watchtide/protocol';
import { useEffect } from 'react';
import { useNow } from '../app/clock';
import type { Trouble } from '../app/troubles';
import { useTroubles } from '../app/troubles';
import { type Answer, useAnswer } from './answer';
import { hurry } from './hurry';

const everyMs = 1000;

/** Returns the watches of the gateway, updated every second. A gateway that does not answer is reported. */
export function useWatches(): Answer<ListWatchesResponse> {
  const answer = useAnswer<ListWatchesResponse>('v1/watches', everyMs);
  useTroubles(useSilence(answer, everyMs));
  // biome-ignore lint/correctness/useExhaustiveDependencies: for each answer
  useEffect(() => {
    if (answer.status === 200) hurry();
  }, [answer.at, answer.status]);
  return answer;
}

/** Returns the troubles to report if an answer is not updated every everyMs. */
export function useSilence({ at, error, status }: Answer<unknown>, everyMs: number): readonly Trouble[] {
  const silent = useNow() - at > 5000 + 2 * everyMs;
  if (!error && !(silent && at > 0)) return [];
  const state = at > 0 ? 'offline' : 'connecting';
  return [{ what: 'The gateway', state, since: at, reason: status > 0 ? error : `it does not answer${error && ` (${error})`}` }];
}
