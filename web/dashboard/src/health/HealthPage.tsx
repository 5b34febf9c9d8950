import type { ListWatchesResponse, Watch, WatchUpstream } from '@watchtide/protocol';
import { Age } from '../app/Age';
import { useRoute } from '../app/route';
import { type Trouble, useTroubles } from '../app/troubles';
import { Answering } from '../charts/Answering';
import { Chart } from '../charts/Chart';
import { changesOf, fillChanges } from '../charts/changes';
import { curvesOf } from '../charts/curves';
import { useEarlier } from '../charts/earlier';
import { mean } from '../charts/rates';
import type { Answer } from '../gateway/answer';
import { isNotServed, useSubscribers } from '../gateway/subscribers';
import { useWatches } from '../gateway/watches';
import { NotServed } from '../subscribers/NotServed';
import { WatchSelect } from '../subscribers/WatchSelect';
import { moment } from '../text/moment';
import { count, rate } from '../text/number';
import { verdictOf } from './fresh';
import { Incidents } from './Incidents';
import { newest, perMinute, resyncs } from './incidents';
import { total, WatchList } from './WatchList';
import './Health.css';

/** Says whether the data is fresh, and since when; with the connections to the upstreams, of one watch or of all. */
export function HealthPage() {
  const watch = useRoute().options.get('watch') ?? '';
  const watches = useWatches();
  const answer = useSubscribers({ watch }, 0);
  useEarlier(watches, fillChanges);
  const all = watches.data?.watches ?? [];
  useTroubles(all.flatMap(troubles));
  const shown = all.filter(({ name }) => !watch || name === watch);
  const off = isNotServed(answer);
  const histories = off ? [] : (answer.data?.upstreams ?? []);
  return (
    <div className="page health-page" data-testid="health">
      <div className="bar">
        <h2>Health</h2>{' '}
        <span className="push">
          <WatchSelect watch={watch} names={all.map(({ name }) => name)} />
        </span>
      </div>
      {!watches.data && <p className="soft">Waiting for the gateway…</p>}
      {shown.length > 0 && <Fresh watches={shown} />}
      {shown.length > 0 && <Totals watches={shown} histories={histories} />}
      {off && watches.data && <NotServed what="reconnects and incidents" watch={watch} known={shown.length > 0} status={answer.status} />}
      {shown.length > 0 && <WatchList watches={shown} histories={histories} counted={!off} />}
      {shown.length > 0 && <Charts watches={shown} answer={watches} histories={histories} />}
      {!off && answer.data && <Incidents incidents={newest(histories)} />}
    </div>
  );
}

// In one sentence.
function Fresh({ watches }: { watches: readonly Watch[] }) {
  const { late, since } = verdictOf(watches);
  return (
    <p className="card verdict" data-testid="verdict" data-fresh={late.length === 0}>
      <strong>{sentence(watches, late)}</strong>
      {since && (
        <>
          {' '}
          since {moment(Date.parse(since))}, for <Age of={since} />
        </>
      )}
      .
    </p>
  );
}

function sentence([first, ...others]: readonly Watch[], late: readonly Watch[]): string {
  if (others.length === 0) return `${first!.name} is ${late.length > 0 ? 'not in sync' : 'in sync'}`;
  if (late.length === 0) return `All ${count(others.length + 1)} watches are in sync`;
  return `${count(late.length)} of ${count(others.length + 1)} watches ${late.length === 1 ? 'is' : 'are'} not in sync`;
}

function troubles({ name, state, since, reason }: Watch): Trouble[] {
  if (state === 'in_sync') return [];
  return [{ what: name, state, since: since ? Date.parse(since) : 0, reason: reason ?? '' }];
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
