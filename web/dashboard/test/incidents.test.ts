import type { Incident } from '@watchtide/protocol';
import { describe, expect, it } from 'vitest';
import { newest, perMinute } from '../src/health/incidents';

const now = Date.parse('2026-01-02T03:59:30Z');
const incident = (first: string, at = first, times = 1, kind: Incident['kind'] = 'reconnect'): Incident => ({
  kind,
  reason: 'error',
  times,
  first: `2026-01-02T${first}Z`,
  at: `2026-01-02T${at}Z`,
});

// The minutes of the last hour, 03:00 to 03:59, in which something happened.
function happened(kind: number, ...incidents: Incident[]): Record<string, number> {
  const { times, curves } = perMinute(incidents, now);
  const values = curves[kind]!.values;
  return Object.fromEntries(times.map((at, i) => [new Date(at).toISOString().slice(11, 16), values[i]!] as const).filter(([, n]) => n > 0));
}

describe('incidents per minute', () => {
  it('cover the last hour, this minute included', () => {
    const { times } = perMinute([], now);
    expect([times.length, times[0], times.at(-1)]).toEqual([60, Date.parse('2026-01-02T03:00:00Z'), Date.parse('2026-01-02T03:59:00Z')]);
  });
  it('count each kind separately', () => {
    const all = [incident('03:10:00'), incident('03:10:59'), incident('03:11:00', undefined, 1, 'resync')];
    expect(happened(0, ...all)).toEqual({ '03:10': 2 });
    expect(happened(1, ...all)).toEqual({ '03:11': 1 });
  });
  it('do not count the first load of a watch as a resync', () => {
    const start: Incident = { ...incident('03:10:00', undefined, 1, 'resync'), reason: 'initial' };
    expect(happened(1, start, incident('03:12:00', undefined, 1, 'resync'))).toEqual({ '03:12': 1 });
  });
  it('spread a repeated incident over its time, without losing any', () => {
    expect(happened(0, incident('03:10:30', '03:12:30', 5))).toEqual({ '03:10': 1, '03:11': 2, '03:12': 2 });
    expect(happened(0, incident('03:10:30', '03:10:30', 3))).toEqual({ '03:10': 3 });
  });
  it('leave out older ones, and the older part of a repeated incident', () => {
    expect(happened(0, incident('02:30:00'))).toEqual({});
    expect(happened(0, incident('02:58:30', '03:01:30', 4))).toEqual({ '03:00': 1, '03:01': 1 });
  });
});

it('the newest incident of all watches comes first', () => {
  const upstream = (watch: string, ...incidents: Incident[]) => ({
    watch,
    source: 's',
    connected: true,
    reconnects: {},
    resyncs: {},
    incidents,
  });
  const all = newest([upstream('a', incident('03:10:00'), incident('03:01:00')), upstream('b', incident('03:05:00'))]);
  expect(all.map(({ watch, at }) => `${watch} ${at.slice(11, 16)}`)).toEqual(['a 03:10', 'b 03:05', 'a 03:01']);
});
