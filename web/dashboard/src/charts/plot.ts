import uPlot from 'uplot';
import type { Curves } from './curves';

/** The style of a chart, independent of its data. */
export interface ChartOptions {
  /** Returns the label of a value; '' for none. */
  readonly format: (value: number) => string;
  /** All values are whole numbers. */
  readonly whole: boolean;
  /** Stacked bars, each as wide as the time to the next, instead of lines. */
  readonly bars: boolean;
  /** Each value lasts until the next, as counts do. */
  readonly steps?: boolean;
  /** Charts with the same name show one cursor. */
  readonly cursor?: string;
}

const height = 170;
const shortestMs = 60_000;
const wholeSteps = [1, 2, 5].flatMap((n) => Array.from({ length: 9 }, (_, e) => n * 10 ** e)).sort((a, b) => a - b);

/** Draws curves into an element, in the colours of the theme. at is called with the index under the pointer. */
export function plot(into: HTMLElement, names: readonly string[], options: ChartOptions, at: (index: number | null) => void): uPlot {
  const axis: uPlot.Axis = {
    stroke: () => colour('--soft'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: () => colour('--line'), width: 1 },
    ticks: { show: false },
  };
  return new uPlot(
    {
      width: into.clientWidth,
      height,
      padding: [8, 28, 0, 0],
      legend: { show: false },
      cursor: {
        ...(options.cursor && { sync: { key: options.cursor, setSeries: false } }),
        y: false,
        drag: { x: false, y: false, setScale: false },
        points: { size: 7 },
      },
      scales: {
        x: { time: true, range: ({ data: [times] }) => period(times, options.bars) },
        y: { range: (_, from, to) => [Math.min(0, from ?? 0), Math.max(1, to ?? 1) * 1.1] },
      },
      axes: [
        { ...axis, size: 30, space: 80, values: (_, seconds) => seconds.map(clock) },
        { ...axis, size: 54, space: 34, values: (_, values) => values.map(options.format), ...(options.whole && { incrs: wholeSteps }) },
      ],
      series: [{}, ...names.map((_, i) => series(i + 1, options))],
      hooks: { setCursor: [({ cursor }) => at(cursor.idx ?? null)] },
    },
    undefined,
    into,
  );
}

/** Converts curves to the data that uPlot draws: in seconds, and with bars stacked. */
export function drawn({ times, curves }: Curves, { bars }: ChartOptions): uPlot.AlignedData {
  const seconds = times.map((ms) => ms / 1000);
  const values = curves.map((curve) => curve.values as (number | null)[]);
  if (!bars) return [seconds, ...values];
  // The tallest is drawn first, so that the others are in front of it.
  const stacked = values.map((_, i) => seconds.map((__, at) => values.slice(i).reduce((all, list) => all + (list[at] ?? 0), 0)));
  return [seconds, ...stacked];
}

function series(number: number, { bars, steps }: ChartOptions): uPlot.Series {
  const stroke = () => colour(`--series-${number}`);
  const stepped = steps ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
  const paths = bars ? uPlot.paths.bars?.({ size: [0.75, 22], align: 1 }) : stepped;
  return { stroke, width: bars ? 0 : 1.75, points: { show: false }, ...(paths && { paths }), ...(bars && { fill: stroke }) };
}

/**
 * The period that a chart shows, in seconds: at least a minute, so that few samples
 * are not stretched over the whole width, and with room for the last bar.
 */
export function period(times: ArrayLike<number>, bars: boolean): [number, number] {
  const first = times[0] ?? Date.now() / 1000;
  const bar = bars ? (times[1] ?? first) - first : 0;
  const end = (times[times.length - 1] ?? first) + bar;
  return [Math.min(first, end - shortestMs / 1000), end];
}

const clock = (seconds: number) =>
  new Date(seconds * 1000).toLocaleTimeString([], {
    hourCycle: 'h23',
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds % 60 !== 0 && { second: '2-digit' }),
  });

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
