import { useNow } from '../app/clock';
import { type Trouble, useTroubles } from '../app/troubles';
import { duration } from '../text/duration';
import type { Connection } from './wire';

/** Reports a stream that was lost, or that is suspiciously silent. */
export function useStreamTrouble(connection: Connection): void {
  const trouble = troubleOf(connection, useNow());
  useTroubles(trouble ? [trouble] : []);
}

/** Returns the trouble to report, if any. A stream that the user disconnected is none. */
export function troubleOf({ state, since, reason, aliveAt, heartbeatMs }: Connection, now: number): Trouble | undefined {
  const what = 'The stream';
  if (state === 'lost') return { what, state: 'offline', since, reason };
  if (state === 'ended' || state === 'hidden') return { what, state: 'closed', since, reason };
  const silent = heartbeatMs > 0 && now - aliveAt > 2 * heartbeatMs;
  if (state !== 'open' || !silent) return undefined;
  return {
    what,
    state: 'offline',
    since: aliveAt,
    reason: `nothing was received, although there is a heartbeat every ${duration(heartbeatMs)}`,
  };
}
