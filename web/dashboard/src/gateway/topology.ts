import type { Answer } from './answer';
import type { Topology } from './contract';
import { useOperators } from './operators';

/** Returns the topology, updated every second. */
export const useTopology = (): Answer<Topology> => useOperators<Topology>('v1/topology', 1000);
