import { type Answer, useAnswer } from './answer';
import type { Replicas } from './contract';

/** Returns all replicas, updated every two seconds. */
export const useReplicas = (): Answer<Replicas> => useAnswer<Replicas>('v1/replicas', 2000);
