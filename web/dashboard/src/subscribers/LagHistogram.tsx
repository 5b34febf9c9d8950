import type { LagCounts } from '@watchtide/protocol';
import { count } from '../text/number';

/** Shows how many subscribers are how far behind. */
export function LagHistogram({ lag: { buckets } }: { lag: LagCounts }) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  return (
    <section aria-labelledby="lags" className="card histogram">
      <h3 id="lags">Subscribers by lag, in changes</h3>
      <dl>
        {buckets.map((bucket, i) => (
          <div key={rangeOf(buckets, i)}>
            <dt>{rangeOf(buckets, i)}</dt>
            <dd>
              <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                <rect
                  className={i > 3 ? 'far' : ''}
                  width={bucket.count > 0 ? Math.max(0.7, (100 * bucket.count) / most) : 0}
                  height="10"
                />
              </svg>
              <span className="number">{count(bucket.count)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function rangeOf(buckets: LagCounts['buckets'], i: number): string {
  const above = buckets[i - 1]?.up_to;
  const upTo = buckets[i]!.up_to;
  if (above === undefined) return count(upTo ?? 0);
  return upTo === undefined ? `${count(above + 1)} and more` : `${count(above + 1)} – ${count(upTo)}`;
}
