import type { Incident, WatchUpstream } from '@watchtide/protocol';
import type { Curves } from '../charts/curves';

/** An incident, with its watch. */
export interface WatchIncident extends Incident {
  readonly watch: string;
}

/** Returns the incidents of all upstreams, the newest first. */
export function newest(upstreams: readonly WatchUpstream[]): WatchIncident[] {
  return upstreams
    .flatMap(({ watch, incidents }) => incidents.map((incident) => ({ ...incident, watch })))
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

// The reason of the first complete snapshot of a watch, which is no resync: nothing was lost.
const atStart = 'initial';

/** Returns the resyncs by reason, without the loads at the start. */
export const resyncs = ({ [atStart]: _, ...others }: Readonly<Record<string, number>>): Readonly<Record<string, number>> => others;

const minuteMs = 60_000;
const minutes = 60;

/** Counts the reconnects and resyncs in each minute of the last hour. */
export function perMinute(incidents: readonly Incident[], now: number): Curves {
  const start = (Math.floor(now / minuteMs) - minutes + 1) * minuteMs;
  const times = Array.from({ length: minutes }, (_, i) => start + i * minuteMs);
  const of = (kind: Incident['kind']) =>
    tally(
      incidents.filter((incident) => incident.kind === kind && (kind !== 'resync' || incident.reason !== atStart)),
      start,
    );
  return {
    times,
    curves: [
      { name: 'reconnects', values: of('reconnect') },
      { name: 'resyncs', values: of('resync') },
    ],
  };
}

function tally(incidents: readonly Incident[], start: number): number[] {
  const all = new Array<number>(minutes).fill(0);
  for (const incident of incidents) {
    const from = Math.max(0, Math.floor((Date.parse(incident.first) - start) / minuteMs));
    const to = Math.min(minutes - 1, Math.floor((Date.parse(incident.at) - start) / minuteMs));
    for (let i = from; i <= to; i++) {
      all[i]! += until(incident, start + (i + 1) * minuteMs) - until(incident, start + i * minuteMs);
    }
  }
  return all;
}

// Of a repeated incident only the first and the last time are known: the others are
// assumed to be evenly spread.
function until({ first, at, times }: Incident, end: number): number {
  const from = Date.parse(first);
  const to = Date.parse(at);
  if (end > to) return times;
  if (end <= from) return 0;
  return Math.ceil(((end - from) / (to - from)) * (times - 1));
}
