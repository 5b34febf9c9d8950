import type { HubStatusEvent } from './port.js';
import type { Replica } from './replica.js';
import type { Resource } from './resource.js';

/**
 * How far what is shown can be trusted.
 *
 * - `connecting`: the first connection is not there yet; nothing to show
 * - `priming`: connected, and the first snapshot is not complete; nothing to show
 * - `in_sync`: what is shown is what the upstream has
 * - `stale`: connected, but what is shown may be out of date
 * - `offline`: the connection is lost; what is shown may be out of date
 * - `closed`: for good, by `close`, `remove`, or a refusal: then there is an `error`
 */
export type State = 'connecting' | 'priming' | 'in_sync' | 'stale' | 'offline' | 'closed';

export interface Freshness {
  readonly state: State;
  /** When the state began, in ms as of `Date.now`. For `stale` and `offline`: when it was last in sync. */
  readonly since: number;
  /** One sentence for a person; empty where there is nothing to say. */
  readonly reason: string;
  /** Why it is closed, unless that was asked for. */
  readonly error?: Error;
}

/** A watch at one moment. A new object whenever anything in it is different. */
export interface View<V = unknown> extends Freshness {
  /** The last consistent state. The same map until a snapshot replaces it: it is changed in place. */
  readonly resources: ReadonlyMap<string, Resource<V>>;
  /** The revision of `resources`; empty before the first snapshot. */
  readonly revision: string;
}

/** The connection, as far as what is shown depends on it. */
export interface Link {
  readonly state: 'connecting' | 'open' | 'offline' | 'closed';
  readonly since: number;
  readonly reason: string;
  readonly error?: Error;
}

/** What state a watch is in, given its copy, its connection and what the server last said of it. */
export function freshness(replica: Replica, link: Link, status: HubStatusEvent | undefined, before: Freshness): Freshness {
  const now = current(replica, link, status);
  if (troubled(now) && troubled(before)) return { ...now, since: Math.min(now.since, before.since) };
  if (now.state === before.state && !status?.since) return { ...now, since: before.since };
  return now;
}

// What was not in sync before is not so since a moment ago: a connection that
// comes and goes must not look fresh.
const troubled = ({ state }: Freshness) => state === 'stale' || state === 'offline';

function current(replica: Replica, link: Link, status: HubStatusEvent | undefined): Freshness {
  const told = { since: status?.since ? Date.parse(status.since) : Date.now(), reason: status?.reason ?? '' };
  if (link.state === 'closed') return { ...link, state: 'closed' };
  if (status?.state === 'offline' || status?.state === 'connecting') return { state: replica.complete ? 'offline' : status.state, ...told };
  if (!replica.complete) return link.state === 'open' ? { state: 'priming', ...told } : { ...link, state: link.state };
  if (link.state !== 'open') return { ...link, state: 'offline' };
  if (status && status.state !== 'in_sync') return { state: 'stale', ...told };
  if (replica.held) return { state: 'stale', since: Date.now(), reason: 'catching up' };
  return { state: 'in_sync', ...told };
}
