import type { ListWatchesResponse, Subscribers } from '@watchtide/protocol';
import { useRef } from 'react';
import { useRoute } from '../app/route';
import { Chart } from '../charts/Chart';
import { curvesOf } from '../charts/curves';
import { useEarlier } from '../charts/earlier';
import type { Answer } from '../gateway/answer';
import { isNotServed, type Selection, useSubscribers } from '../gateway/subscribers';
import { useWatches } from '../gateway/watches';
import { count } from '../text/number';
import { Connected } from './Connected';
import { Departures } from './Departures';
import { Disconnects } from './Disconnects';
import { Groups } from './Groups';
import { fillSubscribers, highest, lagsOf, subscribersOf } from './history';
import { LagHistogram } from './LagHistogram';
import { NotServed } from './NotServed';
import { SelectionBar } from './SelectionBar';
import { selectionOf } from './selection';
import { Views } from './Views';
import { WatchSelect } from './WatchSelect';
import './Subscribers.css';

// The number of subscribers that come with the rest; the table fetches more as it is scrolled.
const limit = 100;

/** Shows the subscribers of one watch or of all, by groups and in a table, and recent disconnects. */
export function SubscribersPage() {
  const { options } = useRoute();
  const selection = selectionOf(options);
  const { watch } = selection;
  const watches = useWatches();
  const answer = useSubscribers(selection, limit);
  const last = useLast(answer.data, selection);
  const data = last?.data;
  useEarlier(watches, fillSubscribers);
  const names = (watches.data?.watches ?? []).map(({ name }) => name);
  const served = !isNotServed(answer);
  return (
    <div className="page subscribers" data-testid="subscribers">
      <div className="bar">
        <h2>Subscribers</h2>{' '}
        <span className="push">
          <WatchSelect watch={watch} names={names} />
        </span>
      </div>
      {!served && watches.data && (
        <NotServed what="the list of subscribers" watch={watch} known={names.includes(watch)} status={answer.status} />
      )}
      {served && !data && <p className="soft">Waiting for the gateway…</p>}
      {served && last && data && (
        <>
          <Totals all={data} />
          <SelectionBar selection={selection} />
          <Charts watch={watch} watches={watches} answer={answer} />
          <div className="charts">
            <LagHistogram lag={data.lag} />
            <Departures minutes={data.left_minutes} />
          </div>
          <Groups selection={selection} all={data} />
          <Connected key={last.key} selection={last.selection} first={data} limit={limit} />
          <Views views={data.views} />
          <Disconnects left={data.left} reasons={data.left_reasons} />
        </>
      )}
    </div>
  );
}

interface Last {
  readonly data: Subscribers;
  readonly selection: Selection;
  /** Another one if the list is another one. */
  readonly key: string;
}

// The page stays as it is until the gateway answers another selection, unless it is of another watch.
function useLast(data: Subscribers | undefined, selection: Selection): Last | undefined {
  const last = useRef<Last>(undefined);
  const { group: _, ...list } = selection;
  if (data) last.current = { data, selection, key: JSON.stringify([data.instance, list]) };
  return last.current?.selection.watch === selection.watch ? last.current : undefined;
}

function Totals({ all: { count: connected, lag, subscribers, left_reasons: reasons } }: { all: Subscribers }) {
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
          {count(lag.max)} <small>changes</small>
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
        summary={`the subscriber furthest behind lacks ${answer.data?.lag.max ?? 0} changes`}
      />
    </div>
  );
}
