import { type PointerEvent, useMemo, useRef } from 'react';
import { href } from '../app/route';
import { useVisible } from '../charts/visible';
import type { Figures, Series, Watch } from '../gateway/contract';
import { duration } from '../text/duration';
import { count, rate } from '../text/number';
import { AreaStrip } from './AreaStrip';
import { FreshnessStrip } from './FreshnessStrip';
import { HeatStrip } from './HeatStrip';
import { highest, latency } from './scale';
import { late, sinceText, stateText, stretchAt, stretches } from './states';

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

/** One watch, or all of them together, over time. */
export function Row({ name, of, template, shared }: { name: string; of: Figures; template: boolean; shared: Shared }) {
  const { series, tops, index } = shared;
  const all = useMemo(() => stretches(of.states), [of.states]);
  const place = useRef<HTMLDivElement>(null);
  const visible = useVisible(place);
  const under = (event: PointerEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = Math.floor(((event.clientX - left) / width) * series.samples);
    shared.point(Math.min(series.samples - 1, Math.max(0, at)));
  };
  return (
    <tr data-testid="timeline-row" data-watch={name}>
      <th scope="row">
        <Name name={name} template={template} options={shared.options} />
      </th>
      <td className="strips">
        <div ref={place} className="plot" onPointerMove={under} onPointerDown={under} onPointerLeave={() => shared.point(null)}>
          {visible && (
            <>
              <FreshnessStrip stretches={all} samples={series.samples} start={series.start} step={series.step} />
              <AreaStrip kind="changes" values={of.changes} top={tops.changes} />
              <HeatStrip p50={of.latency_p50_ms} p99={of.latency_p99_ms} />
              <AreaStrip kind="lag" values={of.lag} top={tops.lag} />
              <span className="cursor" style={{ left: `${(100 * (index + 0.5)) / series.samples}%` }} />
            </>
          )}
        </div>
        <span className="visually-hidden">{summary(of, late(all) * series.step)}</span>
      </td>
      <td className="read">
        <Reading of={of} all={all} watch={shared.now.get(name)} shared={shared} />
      </td>
    </tr>
  );
}

function Name({ name, template, options }: { name: string; template: boolean; options: URLSearchParams }) {
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

interface Read {
  readonly of: Figures;
  readonly all: ReturnType<typeof stretches>;
  readonly watch: Pick<Watch, 'state' | 'since'> | undefined;
  readonly shared: Shared;
}

/** The figures at the cursor. */
function Reading({ of, all, watch, shared: { series, index } }: Read) {
  const stretch = stretchAt(all, index);
  const p50 = of.latency_p50_ms[index];
  const p99 = of.latency_p99_ms[index];
  return (
    <dl>
      <dt className="visually-hidden">Freshness</dt>
      <dd className="is-state" data-state={stretch?.state ?? 'missing'}>
        {stretch ? stateText(stretch) : 'no figures'}
        {stretch && <span className="soft"> {sinceText(stretch, series, watch)}</span>}
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
