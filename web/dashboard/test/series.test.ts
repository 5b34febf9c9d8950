import type { Figures, Series, StateRun } from '@watchtide/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { figures, kept, merge, pathOf, type Step, slice } from '../src/gateway/merge';

type State = NonNullable<StateRun['state']>;
const states: readonly State[] = ['in_sync', 'stale', 'idle'];

// The value of a second is its number, so that a misplaced one shows.
const value = (second: number) => (second % 7 === 0 ? null : second);
const stateAt = (second: number) => states[Math.floor(second / 5) % states.length]!;

function figuresOf(from: number, samples: number, step: Step): Figures {
  const seconds = Array.from({ length: samples }, (_, i) => from + i * step);
  const runs: StateRun[] = [];
  for (const second of seconds) {
    const last = runs.at(-1);
    if (last?.state === stateAt(second)) last.samples++;
    else runs.push({ state: stateAt(second), samples: 1 });
  }
  const list = seconds.map(value);
  return { ...(Object.fromEntries(figures.map((figure) => [figure, list])) as Omit<Figures, 'states'>), states: runs };
}

function seriesOf(from: number, samples: number, { step = 1 as Step, instance = 'one', watches = ['notes'] } = {}): Series {
  const of = figuresOf(from, samples, step);
  return {
    instance,
    delivery_reports: false,
    start: samples > 0 ? from : 0,
    step,
    samples,
    count: watches.length,
    total: of,
    watches: watches.map((watch) => ({ watch, ...of })),
    without: [],
  };
}

describe('series', () => {
  it('are those that were asked for in one piece, however they were asked for', () => {
    fc.assert(
      fc.property(fc.constantFrom<Step>(1, 10), fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 8 }), (step, waits) => {
        const begin = 7000;
        let end = begin + step;
        const answer = (since: number) => {
          const from = Math.max(since, end - kept[step] * step, begin);
          return seriesOf(from, (end - from) / step, { step });
        };
        let known = merge(undefined, answer(0));
        for (const wait of waits) {
          end += wait * step;
          const since = Number(new URLSearchParams(pathOf(step, '', known).split('?')[1]).get('since'));
          known = merge(known, answer(since));
        }
        // Once, and as texts: it is by far the most work, and shorter lists of waits have the answers before.
        expect(JSON.stringify(known)).toBe(JSON.stringify(answer(0)));
      }),
    );
  });
  it('never mix the figures of two replicas, nor of two steps', () => {
    const known = seriesOf(1000, 100);
    const other = seriesOf(1099, 2, { instance: 'two' });
    expect(merge(known, other)).toBe(other);
    expect(merge(known, seriesOf(1090, 2, { step: 10 })).samples).toBe(2);
  });
  it('begin again after a restart, and if the clock was set back', () => {
    const known = seriesOf(1000, 100);
    for (const next of [seriesOf(0, 0), seriesOf(500, 3), seriesOf(1200, 3)]) expect(merge(known, next)).toBe(next);
  });
  it('have a gap for a watch that was added, and none of one that was removed', () => {
    const known = merge(seriesOf(1000, 3, { watches: ['a', 'old'] }), seriesOf(1002, 2, { watches: ['a', 'new'] }));
    expect(known.watches.map(({ watch }) => watch)).toEqual(['a', 'new']);
    expect(known.watches[1]!.changes).toEqual([null, null, 1002, 1003]);
    expect(known.watches[1]!.states[0]).toEqual({ samples: 2 });
    expect(known.watches[0]!.changes).toEqual([1000, null, 1002, 1003]);
  });
  it('cut runs at any place', () => {
    const runs = [{ state: 'in_sync' as const, samples: 3 }, { samples: 2 }, { state: 'stale' as const, samples: 4 }];
    expect(slice(runs, 2, 6)).toEqual([{ state: 'in_sync', samples: 1 }, { samples: 2 }, { state: 'stale', samples: 1 }]);
    expect(slice(runs, 9, 20)).toEqual([]);
  });
});
