import { useRoute } from '../app/route';
import { Answering } from '../charts/Answering';
import { Chart } from '../charts/Chart';
import { changesOf, fillChanges } from '../charts/changes';
import { curvesOf } from '../charts/curves';
import { useEarlier } from '../charts/earlier';
import { mean } from '../charts/rates';
import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse, Watch, WatchUpstream } from '../gateway/contract';
import { isNotServed, useSubscribers } from '../gateway/subscribers';
import { useWatches } from '../gateway/watches';
import { NotServed } from '../subscribers/NotServed';
import { WatchSelect } from '../subscribers/WatchSelect';
import { count, rate } from '../text/number';
import { Incidents } from './Incidents';
import { newest, perMinute, resyncs } from './incidents';
import { total, UpstreamList } from './UpstreamList';
import './Upstreams.css';

/** Shows the connections to the upstreams, of one watch or of all. */
export function UpstreamsPage() {
  const watch = useRoute().options.get('watch') ?? '';
  const watches = useWatches();
  const answer = useSubscribers({ watch }, 0);
  useEarlier(watches, fillChanges);
  const all = watches.data?.watches ?? [];
  const shown = all.filter(({ name }) => !watch || name === watch);
  const off = isNotServed(answer);
  const histories = off ? [] : (answer.data?.upstreams ?? []);
  return (
    <div className="page upstreams-page" data-testid="upstreams">
      <div className="bar">
        <h2>Upstreams</h2>{' '}
        <span className="push">
          <WatchSelect watch={watch} names={all.map(({ name }) => name)} />
        </span>
      </div>
      {!watches.data && <p className="soft">Waiting for the gateway…</p>}
      {shown.length > 0 && <Totals watches={shown} histories={histories} />}
      {off && watches.data && <NotServed what="reconnects and incidents" watch={watch} known={shown.length > 0} status={answer.status} />}
      {shown.length > 0 && <Charts watches={shown} answer={watches} histories={histories} />}
      {shown.length > 0 && <UpstreamList watches={shown} histories={histories} />}
      {!off && answer.data && <Incidents incidents={newest(histories)} />}
    </div>
  );
}

interface Shown {
  readonly watches: readonly Watch[];
  readonly histories: readonly WatchUpstream[];
}

function Totals({ watches, histories }: Shown) {
  const connected = watches.filter(({ upstream }) => upstream.connected).length;
  return (
    <dl className="totals">
      <div className={connected < watches.length ? 'bad' : ''}>
        <dt>Connected</dt>
        <dd>
          {count(connected)} <small>of {count(watches.length)}</small>
        </dd>
      </div>
      {histories.length > 0 && (
        <div>
          <dt>Reconnects since start</dt>
          <dd>{count(sum(histories.map(({ reconnects }) => total(reconnects))))}</dd>
        </div>
      )}
      {histories.length > 0 && (
        <div>
          <dt>Resyncs since start</dt>
          <dd>{count(sum(histories.map((history) => total(resyncs(history.resyncs)))))}</dd>
        </div>
      )}
    </dl>
  );
}

function Charts({ watches, answer, histories }: Shown & { answer: Answer<ListWatchesResponse> }) {
  const rates = changesOf(answer);
  const names = watches.filter(({ partial }) => !partial).map(({ name }) => name);
  const incidents = perMinute(newest(histories), answer.at);
  return (
    <div className="charts">
      <Answering instances={rates.instances} />
      {histories.length > 0 && (
        <Chart
          title="Reconnects and resyncs per minute"
          whole
          bars
          format={count}
          data={incidents}
          summary={incidents.curves.map(({ name, values }) => `${sum(values.map((n) => n ?? 0))} ${name} in the last hour`).join(', ')}
        />
      )}
      {names.length > 0 && (
        <Chart
          title="Changes per second"
          format={rate}
          data={curvesOf(names, (name) => rates.of(name))}
          summary={names.map((name) => `${name} ${rate(mean(rates.of(name), 5000) || 0)}`).join(', ')}
        />
      )}
    </div>
  );
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0);
