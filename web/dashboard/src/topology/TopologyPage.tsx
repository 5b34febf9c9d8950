import type { Topology } from '@watchtide/protocol';
import { useCramped } from '../app/narrow';
import { href, setOptions, useRoute } from '../app/route';
import { useTroubles } from '../app/troubles';
import { mean, Rates } from '../charts/rates';
import { type Kind, kinds, useTopology } from '../gateway/topology';
import { NotServed } from '../subscribers/NotServed';
import { propertyName } from '../subscribers/selection';
import { count, rate } from '../text/number';
import { useNextAttempts } from './attempts';
import { Counts } from './Counts';
import { Diagram } from './Diagram';
import { EdgeTable } from './EdgeTable';
import { counters, freshnessOf, graphOf, type RateOf } from './graph';
import { Legend } from './Legend';
import { Tree } from './Tree';
import './Topology.css';

// Kept for as long as the dashboard is open.
const rates = new Rates();

/** Shows the way of the data, from the sources to the subscribers, and where it is late. */
export function TopologyPage() {
  const option = useRoute().options.get('group');
  const group = kinds.find((kind) => kind === option) ?? 'application';
  const answer = useTopology(group);
  const { data, at } = answer;
  if (data) rates.note(counters(data), at, data.instance);
  useTroubles(
    (data?.watches ?? [])
      .filter(({ state }) => state !== 'in_sync')
      .map(({ name, state, since, reason }) => ({
        what: name,
        state: state as Exclude<typeof state, 'in_sync'>,
        since: since ? Date.parse(since) : 0,
        reason: reason ?? '',
      })),
  );
  const refused = answer.status === 403 || answer.status === 404;
  return (
    <div className="page topology" data-testid="topology">
      <div className="bar">
        <h2>Topology</h2> {!refused && <KindSelect group={group} />}
      </div>
      {refused && <NotServed what="the topology" watch="" known status={answer.status} />}
      {!refused && !data && <p className="soft">Waiting for the gateway…</p>}
      {!refused && data && <Shown topology={data} />}
    </div>
  );
}

function KindSelect({ group }: { group: Kind }) {
  return (
    <label className="push">
      Subscribers by{' '}
      <select value={group} onChange={({ target }) => setOptions({ group: target.value === 'application' ? undefined : target.value })}>
        {kinds.map((kind) => (
          <option key={kind} value={kind}>
            {propertyName(kind)}
          </option>
        ))}
      </select>
    </label>
  );
}

const rateOf: RateOf = (counter) => mean(rates.of(counter), 5000);

function Shown({ topology }: { topology: Topology }) {
  const cramped = useCramped();
  const graph = graphOf(topology, rateOf, useNextAttempts(topology.sources));
  const late = topology.watches.filter((watch) => freshnessOf(watch) !== 'fresh');
  return (
    <>
      <Totals topology={topology} late={late.length} />
      <Counts topology={topology} />
      {topology.watches.length === 0 ? (
        <p className="card none">This gateway has no watches. They are defined in its configuration.</p>
      ) : cramped ? (
        <Tree graph={graph} />
      ) : (
        <Diagram graph={graph} />
      )}
      <Legend />
      <EdgeTable graph={graph} />
    </>
  );
}

function Totals({ topology: { watches, all }, late }: { topology: Topology; late: number }) {
  const changes = watches.map(({ name }) => rateOf(`watch ${name}`)).filter((perSecond) => !Number.isNaN(perSecond));
  return (
    <dl className="totals">
      <div className={late > 0 ? 'bad' : ''}>
        <dt>In sync</dt>
        <dd>
          {count(watches.length - late)} <small>of {count(watches.length)} watches</small>{' '}
          <small>
            <a href={href('health')}>since when</a>
          </small>
        </dd>
      </div>
      <div>
        <dt>Changes per second</dt>
        <dd>{changes.length > 0 ? rate(changes.reduce((sum, n) => sum + n, 0)) : '–'}</dd>
      </div>
      <div>
        <dt>Subscribers</dt>
        <dd>{count(all.count)}</dd>
      </div>
      <div>
        <dt>Highest lag</dt>
        <dd>
          {count(all.lag.max)} <small>changes</small>
        </dd>
      </div>
    </dl>
  );
}
