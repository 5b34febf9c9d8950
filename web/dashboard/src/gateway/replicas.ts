import type { Replicas } from '@watchtide/protocol';
import { type Answer, useAnswer } from './answer';

/** Returns all replicas, updated every two seconds. */
export const useReplicas = (): Answer<Replicas> => useAnswer<Replicas>('v1/replicas', 2000);
