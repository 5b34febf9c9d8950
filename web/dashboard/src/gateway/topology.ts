import type { Topology } from '@watchtide/protocol';
import type { Answer } from './answer';
import { useOperators } from './operators';

/** What the subscribers of a group of the topology have in common. */
export const kinds = ['application', 'principal', 'client_id'] as const;

export type Kind = (typeof kinds)[number];

/** Returns the topology with its subscribers grouped, updated every second. */
export const useTopology = (group: Kind): Answer<Topology> => useOperators<Topology>(`v1/topology?group=${group}`, 1000);
