import type { StatusEvent } from './protocol.js';
import type { Place, Replica } from './replica.js';
import type { Resource } from './resource.js';

/**
 * The freshness of the displayed data.
 *
 * - `connecting`: the first connection is not open yet; nothing to show
 * - `priming`: connected, and the first snapshot is not complete; nothing to show
 * - `in_sync`: the data is that of the upstream
 * - `stale`: connected, or about to be for the first time, but the data may be out of date
 * - `offline`: the connection is lost; the data may be out of date
 * - `closed`: for good, by `close`, `remove`, or a refusal, which sets `error`
 */
export type State = 'connecting' | 'priming' | 'in_sync' | 'stale' | 'offline' | 'closed';

/** A hub also reports the state of its own connection, which no gateway can do. */
export type HubStatusEvent = Omit<StatusEvent, 'state'> & {
  readonly state: StatusEvent['state'] | Extract<State, 'offline' | 'connecting'>;
  /** When the hub last verified what it holds. */
  readonly verified_at?: string;
};

export interface Freshness {
  readonly state: State;
  /** When the state began, in ms as of `Date.now`. For `stale` and `offline`: when it was last in sync. */
  readonly since: number;
  /** A human-readable sentence, or empty. */
  readonly reason: string;
  /** The reason why it is closed, unless that was asked for. */
  readonly error?: Error;
}

/** A watch at one moment: a new object whenever anything in it changes. */
export interface View<V = unknown> extends Freshness {
  /**
   * The last consistent state: another object for each, which is not a copy. An old one may
   * show newer resources; `new Map(resources)` stands still.
   */
  readonly resources: ReadonlyMap<string, Resource<V>>;
  /** The revision of `resources`; empty before the first snapshot. */
  readonly revision: string;
  /** When `resources` were last found to be what the gateway has, by its digest, in ms as of `Date.now`; missing before. */
  readonly verifiedAt?: number;
  /** Before the first snapshot: the resources with the keys that were to come first, when they have come. */
  readonly first?: ReadonlyMap<string, Resource<V>>;
  /** Of a window, as it was last said. */
  readonly place?: Place;
  /** How often changes are sent at most, such as `2/s`; missing without such a bound, and without a connection. */
  readonly maxRate?: string;
}

/** The state of the connection, on which freshness depends. */
export interface ConnectionState {
  readonly state: 'connecting' | 'open' | 'offline' | 'closed';
  readonly since: number;
  readonly reason: string;
  readonly error?: Error;
  readonly maxRate?: string;
}

/** Returns the freshness of a watch, given its copy, its connection and its last status event. */
export function freshness(replica: Replica, connection: ConnectionState, status: HubStatusEvent | undefined, before: Freshness): Freshness {
  const now = current(replica, connection, status);
  if (troubled(now) && troubled(before)) return { ...now, since: Math.min(now.since, before.since) };
  if (now.state === before.state && !status?.since) return { ...now, since: before.since };
  return now;
}

// Trouble lasts from its first moment: with a connection that comes and goes, a watch
// must not look fresh.
const troubled = ({ state }: Freshness) => state === 'stale' || state === 'offline';

function current(replica: Replica, connection: ConnectionState, status: HubStatusEvent | undefined): Freshness {
  const reported = { since: Date.parse(status?.since ?? '') || Date.now(), reason: status?.reason ?? '' };
  if (connection.state === 'closed') return connection as Freshness;
  if (status?.state === 'offline' || status?.state === 'connecting')
    return { state: replica.complete ? 'offline' : status.state, ...reported };
  if (!replica.complete) return connection.state === 'open' ? { state: 'priming', ...reported } : (connection as Freshness);
  if (connection.state !== 'open') return { ...connection, state: connection.state === 'connecting' ? 'stale' : 'offline' };
  if (status && status.state !== 'in_sync') return { state: 'stale', ...reported };
  if (replica.inconsistent) return { state: 'stale', since: Date.now(), reason: 'catching up' };
  return { state: 'in_sync', ...reported };
}
