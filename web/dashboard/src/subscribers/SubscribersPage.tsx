import { useRoute } from '../app/route';
import { Chart } from '../charts/Chart';
import { curvesOf } from '../charts/curves';
import { useEarlier } from '../charts/earlier';
import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse, Subscribers } from '../gateway/contract';
import { isNotServed, useSubscribers } from '../gateway/subscribers';
import { useWatches } from '../gateway/watches';
import { count } from '../text/number';
import { Connected } from './Connected';
import { Disconnects } from './Disconnects';
import { fillSubscribers, highest, lagsOf, subscribersOf } from './history';
import { NotServed } from './NotServed';
import { Views } from './Views';
import { WatchSelect } from './WatchSelect';
import './Subscribers.css';

// The number of subscribers that are shown at once.
const limit = 100;

/** Shows the subscribers of one watch or of all, and recent disconnects. */
export function SubscribersPage() {
  const watch = useRoute().options.get('watch') ?? '';
  const watches = useWatches();
  const answer = useSubscribers(watch, limit);
  useEarlier(watches, fillSubscribers);
  const names = (watches.data?.watches ?? []).map(({ name }) => name);
  return (
    <div className="page" data-testid="subscribers">
      <div className="bar">
        <h2>Subscribers</h2>{' '}
        <span className="push">
          <WatchSelect watch={watch} names={names} />
        </span>
      </div>
      {isNotServed(answer) && watches.data && (
        <NotServed what="the list of subscribers" watch={watch} known={names.includes(watch)} status={answer.status} />
      )}
      {!isNotServed(answer) && !answer.data && <p className="soft">Waiting for the gateway…</p>}
      {!isNotServed(answer) && answer.data && (
        <>
          <Totals all={answer.data} />
          <Charts watch={watch} watches={watches} answer={answer} />
          <Connected subscribers={answer.data.subscribers} of={answer.data.count} />
          <Views views={answer.data.views} />
          <Disconnects left={answer.data.left} reasons={answer.data.left_reasons} />
        </>
      )}
    </div>
  );
}

function Totals({ all: { count: connected, subscribers, left_reasons: reasons } }: { all: Subscribers }) {
  const behind = subscribers.filter((subscriber) => subscriber.catching_up).length;
  return (
    <dl className="totals">
      <div>
        <dt>Connected</dt>
        <dd>{count(connected)}</dd>
      </div>
      <div>
        <dt>Highest lag</dt>
        <dd>
          {count(subscribers[0]?.lag ?? 0)} <small>changes</small>
        </dd>
      </div>
      <div className={behind > 0 ? 'bad' : ''}>
        <dt>Catching up</dt>
        <dd>
          {count(behind)}
          {subscribers.length < connected && behind === subscribers.length && ' or more'}
        </dd>
      </div>
      <div>
        <dt>Disconnects since start</dt>
        <dd>{count(Object.values(reasons).reduce((all, n) => all + n, 0))}</dd>
      </div>
    </dl>
  );
}

function Charts({ watch, watches, answer }: { watch: string; watches: Answer<ListWatchesResponse>; answer: Answer<Subscribers> }) {
  const history = subscribersOf(watches);
  const shown = (watches.data?.watches ?? []).filter(({ name }) => !watch || name === watch);
  const lags = lagsOf(watch, answer);
  return (
    <div className="charts">
      <Chart
        title="Subscribers per watch"
        whole
        steps
        format={count}
        data={curvesOf(
          shown.map(({ name }) => name),
          (name) => history.of(name),
        )}
        summary={shown.map(({ name, subscribers }) => `${name} ${subscribers}`).join(', ')}
      />
      <Chart
        title="Lag"
        whole
        format={count}
        data={curvesOf([highest], () => lags.of(highest))}
        summary={`the subscriber furthest behind lacks ${answer.data?.subscribers[0]?.lag ?? 0} changes`}
      />
    </div>
  );
}
