import { duration } from '../text/duration';
import { clock } from './scale';
import { type Stretch, stateText } from './states';

interface Shown {
  readonly stretches: readonly Stretch[];
  readonly samples: number;
  readonly start: number; // seconds since 1970
  readonly step: number; // seconds
}

/** Shows the freshness of a watch over time, as colours with patterns. */
export function FreshnessStrip({ stretches, samples, start, step }: Shown) {
  return (
    <div className="freshness">
      {stretches.map((stretch) => (
        <span
          key={`${start + stretch.from * step}`}
          className="stretch"
          data-state={stretch.state ?? 'missing'}
          style={{ left: `${(100 * stretch.from) / samples}%`, width: `${(100 * stretch.samples) / samples}%` }}
          title={`${stateText(stretch)} from ${clock(start + stretch.from * step)} for ${duration(stretch.samples * step * 1000)}`}
        />
      ))}
    </div>
  );
}
