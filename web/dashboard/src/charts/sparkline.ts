import { end, type Sample } from './samples';

/** The size of the drawing; the page stretches it. */
export const width = 120;
export const height = 24;

/**
 * Returns the outline of samples over the last windowMs as SVG path data: one stepped
 * line for each stretch without a gap, to be closed along the bottom.
 */
export function outlines(samples: readonly Sample[], windowMs: number, top: number): readonly string[] {
  const newest = end(samples);
  const x = (at: number) => round(Math.max(0, width - ((newest - at) / windowMs) * width));
  const y = (value: number) => round(height - 1 - (value / top) * (height - 2));
  const runs: string[] = [];
  let run = '';
  let level = NaN; // of the current step
  for (let i = 1; i < samples.length; i++) {
    const { at, value } = samples[i]!;
    if (at <= newest - windowMs) continue;
    if (Number.isNaN(value)) {
      if (run) runs.push(`${run}H${x(samples[i - 1]!.at)}`);
      run = '';
    } else if (!run) {
      run = `M${x(samples[i - 1]!.at)} ${y(value)}`;
    } else if (value !== level) {
      run += `H${x(samples[i - 1]!.at)}V${y(value)}`;
    }
    level = value;
  }
  if (run) runs.push(`${run}H${width}`);
  return runs;
}

/** Returns the area under an outline. */
export const area = (outline: string): string => {
  const [from = 0] = outline.slice(1).split(' ', 1).map(Number);
  return `${outline}V${height}H${from}Z`;
};

const round = (n: number) => Math.round(n * 10) / 10;
