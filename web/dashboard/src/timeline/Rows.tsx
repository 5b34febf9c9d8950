import { useState } from 'react';
import type { Series, Watch } from '../gateway/contract';
import { count, rate } from '../text/number';
import { Legend } from './Legend';
import { Row, type Shared } from './Row';
import { ceiling, clock, highest, ticks } from './scale';
import { sinceText, stateText, stretchAt, stretches, together } from './states';

/** Shows all watches on one time axis, with one cursor. */
export function Rows({ series, watches, options }: { series: Series; watches: readonly Watch[]; options: URLSearchParams }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const index = Math.min(pointed ?? series.samples - 1, series.samples - 1);
  const top = (figure: 'changes' | 'lag') => ceiling(Math.max(...series.watches.map((watch) => highest(watch[figure])), 0));
  const tops = { changes: Math.max(top('changes'), ceiling(highest(series.total?.changes ?? []))), lag: top('lag') };
  const shared: Shared = { series, tops, index, options, now: together(watches), point: setPointed };
  return (
    <>
      <Legend />
      <p className="soft scales">
        All rows have the same scales: changes up to {rate(tops.changes)} per second, latency from 0.1 ms to 10 s, lag up to{' '}
        {count(tops.lag)} {tops.lag === 1 ? 'change' : 'changes'}.
      </p>
      <div className="card scroll">
        <table className="plain timeline">
          <caption className="visually-hidden">Watches over time</caption>
          <thead>
            <tr>
              <th scope="col">Watch</th>
              <th scope="col">
                <TimeAxis shared={shared} />
              </th>
              <th scope="col" className="read">
                at {clock(series.start + index * series.step)}
              </th>
            </tr>
          </thead>
          <tbody>
            {series.total && series.watches.length > 1 && <Row name="" of={series.total} template={false} shared={shared} />}
            {series.watches.map((watch) => (
              <Row key={watch.watch} name={watch.watch} of={watch} template={watch.template ?? false} shared={shared} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The time axis, and the cursor for the keyboard. */
function TimeAxis({ shared }: { shared: Shared }) {
  const { series, index, point } = shared;
  const { start, step, samples } = series;
  const end = start + samples * step;
  return (
    <div className="axis">
      <input
        type="range"
        aria-label="Time"
        min={0}
        max={Math.max(0, samples - 1)}
        value={index}
        aria-valuetext={`${clock(start + index * step)}: ${described(shared)}`}
        onChange={({ target }) => point(Number(target.value))}
        onBlur={() => point(null)}
      />
      <div className="ticks" aria-hidden="true">
        {ticks(start, end - (end - start) / 20).map((at) => (
          <span key={at} style={{ left: `${(100 * (at - start)) / (end - start)}%` }}>
            {clock(at, end - start < 120)}
          </span>
        ))}
      </div>
    </div>
  );
}

function described({ series, index, now }: Shared): string {
  const late = series.watches.flatMap(({ watch, states }) => {
    const stretch = stretchAt(stretches(states), index);
    if (!stretch?.state || stretch.state === 'in_sync' || stretch.state === 'idle') return [];
    return [`${watch} ${stateText(stretch)} ${sinceText(stretch, series, now.get(watch))}`];
  });
  return late.length > 0 ? late.join(', ') : 'all watches in sync';
}
