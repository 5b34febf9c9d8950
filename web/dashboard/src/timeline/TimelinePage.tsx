import type { Series, Watch } from '@watchtide/protocol';
import { useMemo } from 'react';
import { href, setOptions, useRoute } from '../app/route';
import { useTroubles } from '../app/troubles';
import type { Step } from '../gateway/merge';
import { useSeries } from '../gateway/series';
import { useSilence, useWatches } from '../gateway/watches';
import { NotServed } from '../subscribers/NotServed';
import { count } from '../text/number';
import { Charts } from './Charts';
import { Delivery } from './Delivery';
import { Rows } from './Rows';
import '../charts/Chart.css';
import './Timeline.css';

/** Shows all watches over time, or one of them. */
export function TimelinePage({ watch }: { watch: string }) {
  const { options } = useRoute();
  const hour = options.get('range') === '1h';
  const step: Step = hour ? 10 : 1;
  const known = useSeries(step, watch);
  const watches = useWatches().data?.watches ?? [];
  const names = watches.map(({ name }) => name);
  const silence = useSilence(known, step * 1000);
  useTroubles(known.denied ? [] : silence);
  const { data, denied } = known;
  return (
    <div className="page timeline-page" data-testid="timeline" data-samples={data?.samples}>
      <div className="bar">
        <h2>
          {watch ? (
            <>
              <a href={href('timeline', '', options)}>Timeline</a> of {watch}
            </>
          ) : (
            'Timeline'
          )}
        </h2>{' '}
        {watch && names.includes(watch) && <a href={href('watches', watch)}>its table</a>}
        <RangeSwitch hour={hour} />
      </div>
      {denied && (
        <NotServed
          what="figures over time"
          watch={watch}
          known={names.includes(watch) || names.length === 0}
          status={known.status}
          onAll={() => {
            location.hash = href('timeline', '', options);
          }}
        />
      )}
      {!denied && !data && <p className="soft">Waiting for the gateway…</p>}
      {data && data.samples === 0 && <p className="soft">The gateway has just begun to record.</p>}
      {data && data.samples > 0 && <Content data={data} watches={watches} watch={watch} options={options} hour={hour} />}
    </div>
  );
}

interface Shown {
  readonly data: Series;
  readonly watches: readonly Watch[];
  readonly watch: string;
  readonly options: URLSearchParams;
  readonly hour: boolean;
}

function Content({ data, watches, watch, options, hour }: Shown) {
  const times = useMemo(() => timesOf(data), [data]);
  const of = watch ? data.watches[0] : data.total;
  return (
    <>
      {watch && of && <Charts series={data} of={of} times={times} />}
      {!watch && data.watches.length > 0 && <Rows series={data} watches={watches} options={options} />}
      {!watch && data.watches.length + data.without.length < data.count && (
        <p className="soft">
          The first {count(data.watches.length + data.without.length)} of {count(data.count)} watches.
        </p>
      )}
      {data.without.length > 0 && <Without data={data} />}
      {of && <Delivery of={of} times={times} enabled={data.delivery_reports} period={hour ? 'hour' : 'five minutes'} />}
    </>
  );
}

function Without({ data: { without } }: { data: Series }) {
  return (
    <ul className="without">
      {without.map(({ watch, reason }) => (
        <li key={watch}>
          <strong>{watch}</strong> has no figures: {reason}
        </li>
      ))}
    </ul>
  );
}

function RangeSwitch({ hour }: { hour: boolean }) {
  return (
    <fieldset className="ranges push">
      <legend className="visually-hidden">Period</legend>
      <button type="button" aria-pressed={!hour} onClick={() => setOptions({ range: undefined })}>
        5 min
      </button>
      <button type="button" aria-pressed={hour} onClick={() => setOptions({ range: '1h' })}>
        1 h
      </button>
    </fieldset>
  );
}

/** Returns the end of each interval, in ms. */
const timesOf = ({ start, step, samples }: Series): number[] => Array.from({ length: samples }, (_, i) => (start + (i + 1) * step) * 1000);
