import type { Figures, Series, Watch } from '@watchtide/protocol';
import { useMemo, useState } from 'react';
import { type Column, DataTable } from '../app/DataTable';
import { count, rate } from '../text/number';
import { Legend } from './Legend';
import { Name, Reading, type Row, type Shared, Strips } from './Row';
import { ceiling, clock, highest, ticks } from './scale';
import { sinceText, stateText, stretchAt, stretches, together } from './states';

/** Shows all watches on one time axis, with one cursor. */
export function Rows({ series, watches, options }: { series: Series; watches: readonly Watch[]; options: URLSearchParams }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const index = Math.min(pointed ?? series.samples - 1, series.samples - 1);
  const top = (figure: 'changes' | 'lag') => ceiling(Math.max(...series.watches.map((watch) => highest(watch[figure])), 0));
  const tops = { changes: Math.max(top('changes'), ceiling(highest(series.total?.changes ?? []))), lag: top('lag') };
  const shared: Shared = { series, tops, index, options, now: together(watches), point: setPointed };
  const rows = useMemo(() => rowsOf(series), [series]);
  return (
    <>
      <Legend />
      <p className="soft scales">
        All rows have the same scales: changes up to {rate(tops.changes)} per second, latency from 0.1 ms to 10 s, lag up to{' '}
        {count(tops.lag)} {tops.lag === 1 ? 'change' : 'changes'}.
      </p>
      <DataTable
        caption="Watches over time"
        className="timeline"
        columns={columnsOf(shared)}
        rows={rows}
        keyOf={({ name }) => name}
        dataOf={({ name }) => ({ 'data-testid': 'timeline-row', 'data-watch': name })}
      />
    </>
  );
}

const columnsOf = (shared: Shared): readonly Column<Row>[] => [
  { title: 'Watch', cell: (row) => <Name row={row} shared={shared} /> },
  { title: <TimeAxis shared={shared} />, cell: (row) => <Strips row={row} shared={shared} /> },
  {
    title: `at ${clock(shared.series.start + shared.index * shared.series.step)}`,
    cell: (row) => <Reading row={row} shared={shared} />,
    className: 'read',
  },
];

function rowsOf({ total, watches }: Series): Row[] {
  const row = (name: string, of: Figures, template = false) => ({ name, of, template, stretches: stretches(of.states) });
  const rows = watches.map((of) => row(of.watch, of, of.template));
  return total && rows.length > 1 ? [row('', total), ...rows] : rows;
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
