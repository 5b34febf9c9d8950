import type { ListWatchesResponse, Series } from '@watchtide/protocol';
import { useEffect, useReducer, useRef } from 'react';
import type { Answer } from '../gateway/answer';
import type { Figure } from '../gateway/merge';
import { followSeries } from '../gateway/series';
import { gapMs, type Sample } from './samples';

/** Something that takes samples from before its own. */
interface Filled {
  fill(earlier: ReadonlyMap<string, readonly Sample[]>): void;
}

/**
 * Fills charts that the page measures itself with what the gateway has recorded of the minutes
 * before the page was opened, and of the time in which it did not measure, as while its tab was
 * hidden. Where the gateway does not tell that to this user, they begin empty.
 */
export function useEarlier({ data, at }: Answer<ListWatchesResponse>, fill: (earlier: Earlier) => void): void {
  const instance = data?.instance;
  const [, rendered] = useReducer((n: number) => n + 1, 0);
  const began = useBeginning(at);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after each gap
  useEffect(() => {
    if (instance === undefined) return;
    const stop = followSeries(1, '', ({ data: series, denied }) => {
      if (denied || series) stop();
      if (series?.instance !== instance || series.samples === 0) return;
      fill(new Earlier(series, Date.now()));
      rendered();
    });
    return stop;
  }, [instance, fill, began]);
}

/** Returns the time of the first answer, or of the first one after the last gap. */
function useBeginning(at: number): number {
  const seen = useRef({ began: 0, last: 0 });
  const { began, last } = seen.current;
  seen.current = { began: at - last > gapMs ? at : began, last: at };
  return seen.current.began;
}

/** The figures of an answer that arrived at a time, as samples by the clock of the browser. */
export class Earlier {
  constructor(
    private readonly series: Series,
    private readonly at: number,
  ) {}

  /** Adds a figure of each watch to samples that are kept by watch. */
  fill(figure: Figure, into: Filled): void {
    into.fill(new Map(this.series.watches.map((watch) => [watch.watch, this.samples(watch[figure])])));
  }

  /** The replica whose figures they are. */
  get instance(): string {
    return this.series.instance;
  }

  /** The names of the watches. */
  get names(): readonly string[] {
    return this.series.watches.map(({ watch }) => watch);
  }

  /** Returns the samples of a figure of a watch, or of all together (''). */
  of(watch: string, figure: Figure): readonly Sample[] {
    const found = watch ? this.series.watches.find((one) => one.watch === watch) : this.series.total;
    return found ? this.samples(found[figure]) : [];
  }

  private samples(values: readonly (number | null)[]): Sample[] {
    const stepMs = this.series.step * 1000;
    return values.map((value, i) => ({ at: this.at - (values.length - 1 - i) * stepMs, value: value ?? Number.NaN }));
  }
}
