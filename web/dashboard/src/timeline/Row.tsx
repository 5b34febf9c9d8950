import type { Figures, Series, Watch } from '@watchtide/protocol';
import { type PointerEvent, useRef } from 'react';
import { href } from '../app/route';
import { useVisible } from '../charts/visible';
import { duration } from '../text/duration';
import { count, rate } from '../text/number';
import { AreaStrip } from './AreaStrip';
import { FreshnessStrip } from './FreshnessStrip';
import { HeatStrip } from './HeatStrip';
import { highest, latency } from './scale';
import { late, type Stretch, sinceText, stateText, stretchAt } from './states';

/** What all rows share: the time axis, the scales and the cursor. */
export interface Shared {
  readonly series: Series;
  readonly tops: { readonly changes: number; readonly lag: number };
  readonly index: number; // of the interval that is read
  readonly options: URLSearchParams;
  /** The watches as they are now, by name. */
  readonly now: ReadonlyMap<string, Pick<Watch, 'state' | 'since'>>;
  point(index: number | null): void;
}

interface Shown {
  readonly row: Row;
  readonly shared: Shared;
}

/** One watch, or all of them together, over time. */
export interface Row {
  readonly name: string;
  readonly of: Figures;
  readonly stretches: readonly Stretch[];
  readonly template: boolean;
}

/** The figures of a row, as strips on the time axis. */
export function Strips({ row: { of, stretches }, shared: { series, tops, index, point } }: Shown) {
  const place = useRef<HTMLDivElement>(null);
  const visible = useVisible(place);
  const under = (event: PointerEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = Math.floor(((event.clientX - left) / width) * series.samples);
    point(Math.min(series.samples - 1, Math.max(0, at)));
  };
  return (
    <>
      <div ref={place} className="plot" onPointerMove={under} onPointerDown={under} onPointerLeave={() => point(null)}>
        {visible && (
          <>
            <FreshnessStrip stretches={stretches} samples={series.samples} start={series.start} step={series.step} />
            <AreaStrip kind="changes" values={of.changes} top={tops.changes} />
            <HeatStrip p50={of.latency_p50_ms} p99={of.latency_p99_ms} />
            <AreaStrip kind="lag" values={of.lag} top={tops.lag} />
            <span className="cursor" style={{ left: `${(100 * (index + 0.5)) / series.samples}%` }} />
          </>
        )}
      </div>
      <span className="visually-hidden">{summary(of, late(stretches) * series.step)}</span>
    </>
  );
}

/** The name of a row, which links to its pages. */
export function Name({ row: { name, template }, shared: { options } }: Shown) {
  if (!name) return <span className="name">All watches</span>;
  return (
    <span className="names">
      <a className="name" href={href('timeline', name, options)}>
        {name}
      </a>
      <span className="soft">
        {template ? (
          'all watches of this template'
        ) : (
          <a href={href('watches', name)}>
            table<span className="visually-hidden"> of {name}</span>
          </a>
        )}
      </span>
    </span>
  );
}

/** The figures of a row at the cursor. */
export function Reading({ row: { name, of, stretches }, shared: { series, index, now } }: Shown) {
  const stretch = stretchAt(stretches, index);
  const p50 = of.latency_p50_ms[index];
  const p99 = of.latency_p99_ms[index];
  return (
    <dl>
      <dt className="visually-hidden">Freshness</dt>
      <dd className="is-state" data-state={stretch?.state ?? 'missing'}>
        {stretch ? stateText(stretch) : 'no figures'}
        {stretch && <span className="soft"> {sinceText(stretch, series, now.get(name))}</span>}
      </dd>
      <dt className="visually-hidden">Changes</dt>
      <dd className="is-changes">{shown(of.changes[index], (n) => `${rate(n)} changes/s`)}</dd>
      <dt className="visually-hidden">Latency</dt>
      <dd className="is-latency">
        {typeof p50 === 'number' && typeof p99 === 'number' ? (
          `${latency(p50)}, p99 ${latency(p99)}`
        ) : (
          <span className="soft">nothing sent</span>
        )}
      </dd>
      <dt className="visually-hidden">Lag</dt>
      <dd className="is-lag">{shown(of.lag[index], (n) => `lag ${count(n)}`)}</dd>
    </dl>
  );
}

const shown = (value: number | null | undefined, format: (value: number) => string) => (typeof value === 'number' ? format(value) : '–');

function summary(of: Figures, lateSeconds: number): string {
  const fresh = lateSeconds > 0 ? `not in sync for ${duration(lateSeconds * 1000)}` : 'always in sync';
  const slow = highest(of.latency_p99_ms);
  return `${fresh}, at most ${rate(highest(of.changes))} changes per second, ${slow > 0 ? `latency at most ${latency(slow)}, ` : ''}lag at most ${count(highest(of.lag))}`;
}
