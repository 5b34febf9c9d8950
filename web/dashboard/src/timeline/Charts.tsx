import type { Figures, Series } from '@watchtide/protocol';
import { Chart } from '../charts/Chart';
import type { Figure } from '../gateway/merge';
import { count, rate } from '../text/number';
import { FreshnessStrip } from './FreshnessStrip';
import { HeatStrip } from './HeatStrip';
import { Legend } from './Legend';
import { highest, latency, size } from './scale';
import { stretches } from './states';

/** Shows one watch over time, with charts on one time axis. */
export function Charts({ series, of, times }: { series: Series; of: Figures; times: readonly number[] }) {
  const curves = (...named: ReadonlyArray<readonly [name: string, figure: Figure]>) => ({
    times,
    curves: named.map(([name, figure]) => ({ name, values: of[figure] })),
  });
  const shared = { cursor: 'timeline' };
  return (
    <>
      <Legend />
      <div className="card alone">
        <FreshnessStrip stretches={stretches(of.states)} samples={series.samples} start={series.start} step={series.step} />
        <HeatStrip p50={of.latency_p50_ms} p99={of.latency_p99_ms} />
      </div>
      <div className="charts">
        <Chart
          {...shared}
          title="Per second"
          format={rate}
          data={curves(['changes committed', 'changes'], ['events sent', 'events'])}
          summary={`at most ${rate(highest(of.changes))} changes and ${rate(highest(of.events))} events`}
        />
        <Chart
          {...shared}
          title="Latency from commit to write"
          format={latency}
          data={curves(['p50', 'latency_p50_ms'], ['p99', 'latency_p99_ms'])}
          summary={`at most ${latency(highest(of.latency_p99_ms))}`}
        />
        <Chart
          {...shared}
          title="Bytes per second, before compression"
          format={size}
          data={curves(['events', 'bytes'])}
          summary={`at most ${size(highest(of.bytes))}`}
        />
        <Chart
          {...shared}
          title="Highest lag"
          whole
          format={count}
          data={curves(['changes', 'lag'])}
          summary={`at most ${count(highest(of.lag))} changes`}
        />
        <Chart
          {...shared}
          title="Subscribers"
          whole
          steps
          format={count}
          data={curves(['subscribers', 'subscribers'])}
          summary={`at most ${count(highest(of.subscribers))}`}
        />
      </div>
    </>
  );
}
