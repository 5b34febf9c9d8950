import type { ReplicaFacts, Replicas, WatchOfInstance } from '@watchtide/protocol';

/** A replica with its address; that of the one that answers is not known. */
export interface Replica {
  readonly address: string | undefined;
  readonly facts: ReplicaFacts | undefined;
  readonly error: string | undefined;
}

/** Returns all replicas, the one that answers first. */
export function replicasOf({ self, siblings }: Replicas): readonly Replica[] {
  return [
    { address: undefined, facts: self, error: undefined },
    ...siblings.map(({ address, answer, error }) => ({ address, facts: answer, error })),
  ];
}

/** Returns what to call each replica: its host, with the instance where several have that host, or the instance if it names no host. */
export function namesOf(all: readonly Pick<ReplicaFacts, 'host' | 'instance'>[]): readonly string[] {
  const on = (host: string) => all.filter((other) => other.host === host).length;
  return all.map(({ host, instance }) => (!host ? instance : on(host) > 1 ? `${host} (${instance})` : host));
}

/** How far each replica is with one watch; undefined: it does not have the watch. */
export interface Row {
  readonly name: string;
  /** Whether they name different orders of revisions, so that revisions cannot be compared. */
  readonly split: boolean;
  readonly of: readonly (WatchOfReplica | undefined)[];
}

export interface WatchOfReplica extends WatchOfInstance {
  /** How many revisions it is behind the one that is furthest; undefined: it cannot be compared. */
  readonly behind: bigint | undefined;
}

/** Compares how far replicas are with each watch. */
export function compared(all: readonly ReplicaFacts[]): readonly Row[] {
  const names = new Set(all.flatMap(({ watches }) => watches.map(({ name }) => name)));
  return [...names].sort().map((name) =>
    row(
      name,
      all.map(({ watches }) => watches.find((watch) => watch.name === name)),
    ),
  );
}

function row(name: string, of: readonly (WatchOfInstance | undefined)[]): Row {
  const epochs = new Set(of.flatMap((watch) => (watch?.epoch ? [watch.epoch] : [])));
  const split = epochs.size > 1;
  const furthest = of.reduce((most, watch) => (watch && BigInt(watch.revision) > most ? BigInt(watch.revision) : most), 0n);
  const behind = (watch: WatchOfInstance) => (split || !watch.epoch ? undefined : furthest - BigInt(watch.revision));
  return { name, split, of: of.map((watch) => watch && { ...watch, behind: behind(watch) }) };
}
