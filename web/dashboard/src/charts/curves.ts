import type { Sample } from './samples';

/** One line of a chart: a value or null for each of its times. */
export interface Curve {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

/** Curves over the same times, in ms as of Date.now. */
export interface Curves {
  readonly times: readonly number[];
  readonly curves: readonly Curve[];
}

/** The number of colours: --series-1 and so on. */
export const colours = 4;

/**
 * Returns one curve for each name, in their order. If there are more names than
 * colours, the curves with the smallest sums are added up into one.
 */
export function curvesOf(names: readonly string[], samples: (name: string) => readonly Sample[]): Curves {
  const lists = names.map((name) => ({ name, samples: samples(name), sum: sum(samples(name)) }));
  const times = lists.reduce<readonly Sample[]>((a, b) => (b.samples.length > a.length ? b.samples : a), []).map(({ at }) => at);
  const curve = ({ name, samples: list }: (typeof lists)[number]): Curve => ({ name, values: aligned(list, times) });
  if (lists.length <= colours) return { times, curves: lists.map(curve) };
  const ranked = lists.toSorted((a, b) => b.sum - a.sum);
  const shown = new Set(ranked.slice(0, colours - 1).map(({ name }) => name));
  const rest = lists.filter(({ name }) => !shown.has(name)).map(curve);
  const others = {
    name: `${rest.length} others`,
    values: added(
      rest.map(({ values }) => values),
      times.length,
    ),
  };
  return { times, curves: [...lists.filter(({ name }) => shown.has(name)).map(curve), others] };
}

// Names that were added later have no samples of older times, and gaps are not filled for all names.
function aligned(samples: readonly Sample[], times: readonly number[]): (number | null)[] {
  let next = 0;
  return times.map((time) => {
    while (next < samples.length && samples[next]!.at < time) next++;
    const found = samples[next];
    return found?.at !== time || Number.isNaN(found.value) ? null : found.value;
  });
}

function added(columns: ReadonlyArray<readonly (number | null)[]>, length: number): (number | null)[] {
  return Array.from({ length }, (_, i) =>
    columns.reduce<number | null>((all, { [i]: value = null }) => (value === null ? all : (all ?? 0) + value), null),
  );
}

const sum = (samples: readonly Sample[]) => samples.reduce((all, { value }) => all + (value || 0), 0);
