import type { Figures } from '@watchtide/protocol';
import { Chart } from '../charts/Chart';
import { count } from '../text/number';
import { highest, latency } from './scale';

interface Shown {
  readonly of: Figures;
  readonly times: readonly number[];
  readonly enabled: boolean;
  readonly period: string; // `five minutes`
}

/** Shows what browsers report of when they have painted changes. */
export function Delivery({ of, times, enabled, period }: Shown) {
  const reports = of.delivery_reports.reduce<number>((sum, n) => sum + (n ?? 0), 0);
  return (
    <section aria-labelledby="seen">
      <h3 id="seen">What users see</h3>
      {!enabled && (
        <p>
          Pages can report how long a change took until it was painted. This gateway does not accept such reports: set{' '}
          <code>http.delivery_reports: true</code>, and call <code>reportDelivery</code> of <code>@watchtide/client/delivery</code> in your
          pages.
        </p>
      )}
      {enabled && (
        <p>
          {reports === 0
            ? `No page has reported anything in the last ${period}. Pages that call reportDelivery of @watchtide/client/delivery do.`
            : `Pages have reported ${count(reports)} painted ${reports === 1 ? 'change' : 'changes'} in the last ${period}. Clients can falsify their reports.`}
        </p>
      )}
      {reports > 0 && (
        <Chart
          title="From the commit until it is painted"
          format={latency}
          data={{
            times,
            curves: [
              { name: 'p50', values: of.delivery_p50_ms },
              { name: 'p99', values: of.delivery_p99_ms },
            ],
          }}
          summary={`at most ${latency(highest(of.delivery_p99_ms))}`}
        />
      )}
    </section>
  );
}
