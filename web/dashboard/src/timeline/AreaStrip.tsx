import { areas } from './scale';

interface Shown {
  readonly kind: 'changes' | 'lag';
  readonly values: readonly (number | null)[];
  readonly top: number;
}

const height = 32;

/** Shows numbers over time as a stepped area, up to the top of a scale that all rows share. */
export function AreaStrip({ kind, values, top }: Shown) {
  return (
    <svg className={`strip ${kind}`} viewBox={`0 0 ${Math.max(1, values.length)} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={areas(values, top, height)} />
    </svg>
  );
}
