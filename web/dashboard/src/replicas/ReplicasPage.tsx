import type { LimitInUse, MemoryInUse, ReplicaFacts } from '@watchtide/protocol';
import { Age } from '../app/Age';
import { type Column, Table } from '../app/DataTable';
import { useOperator } from '../gateway/operator';
import { useReplicas } from '../gateway/replicas';
import { NotServed } from '../subscribers/NotServed';
import { bytes, count } from '../text/number';
import { visible } from '../text/visible';
import { compared, namesOf, type Replica, type Row, replicasOf, type WatchOfReplica } from './compare';
import './Replicas.css';

/** Shows the replica that answers, and the others that its configuration names. */
export function ReplicasPage() {
  const operator = useOperator();
  if (operator === undefined) return <h2>Replicas</h2>;
  if (!operator) return <NotServed what="the replicas" watch="" known status={404} />;
  return <Served />;
}

function Served() {
  const { data, error } = useReplicas();
  const all = data ? replicasOf(data) : [];
  const facts = all.flatMap(({ facts }) => facts ?? []);
  const names = namesOf(facts);
  const nameOf = (of: ReplicaFacts | undefined) => (of && names[facts.indexOf(of)]) ?? '';
  return (
    <div className="page replicas-page" data-testid="replicas">
      <h2>Replicas</h2>
      {error && <p role="alert">The replicas are not known: {error}</p>}
      {!data && !error && <p className="soft">Waiting for the gateway…</p>}
      {data && (
        <>
          <ul className="replicas">
            {all.map((replica, i) => (
              <li key={replica.address ?? 'self'} className="card">
                <Card replica={replica} name={nameOf(replica.facts)} answers={i === 0} />
              </li>
            ))}
          </ul>
          {!data.configured && (
            <p className="soft">
              No other replicas are configured. <code>operations.replicas</code> names their operations listeners.
            </p>
          )}
          <Watches rows={compared(facts)} names={names} />
        </>
      )}
    </div>
  );
}

function Card({ replica: { address, facts, error }, name, answers }: { replica: Replica; name: string; answers: boolean }) {
  if (!facts) {
    return (
      <>
        <h3>{address}</h3>
        <p className="failed">
          <span className="state" data-state="stale">
            no answer
          </span>{' '}
          {error}
        </p>
      </>
    );
  }
  return (
    <>
      <div className="bar">
        <h3>{name}</h3>
        <span className="state" data-state={facts.ready ? 'in_sync' : 'stale'}>
          {facts.ready ? 'ready' : 'not ready'}
        </span>
        {answers && <span className="soft">answers this page</span>}
      </div>
      {facts.reasons.length > 0 && (
        <ul className="reasons">
          {facts.reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      <dl className="facts">
        {facts.host && (
          <div>
            <dt>Instance</dt>
            <dd>{facts.instance}</dd>
          </div>
        )}
        <div>
          <dt>Version</dt>
          <dd>{facts.version}</dd>
        </div>
        <div>
          <dt>Up for</dt>
          <dd>
            <Age of={facts.started} />
          </dd>
        </div>
        {address && (
          <div>
            <dt>Address</dt>
            <dd>{address}</dd>
          </div>
        )}
      </dl>
      <Limits limits={facts.limits} name={name} />
    </>
  );
}

function Limits({ limits, name }: { limits: ReplicaFacts['limits']; name: string }) {
  return (
    <Table
      caption={`Limits in use of ${name}`}
      className="limits"
      columns={limitColumns}
      rows={limits}
      keyOf={({ name }) => name}
      untitled
    />
  );
}

const limitColumns: readonly Column<LimitInUse>[] = [
  { title: 'Limit', cell: ({ name }) => titles[name] ?? name },
  { title: 'In use', cell: (limit) => <InUse limit={limit} />, numeric: true },
  {
    title: 'Share',
    cell: ({ name, used, most }) =>
      most !== undefined && <meter min={0} max={1} high={0.8} value={used / most} aria-label={`${name} in use`} />,
  },
];

function InUse({ limit }: { limit: LimitInUse }) {
  const { used, most, waiting } = limit;
  return (
    <>
      {amount(used, limit)}
      {most !== undefined && ` of ${amount(most, limit)}`}
      {waiting !== undefined && <strong>, {count(waiting)} waiting</strong>}
    </>
  );
}

const titles: Readonly<Record<string, string>> = {
  watches: 'memory of watches',
  served: 'served of it',
  views: 'memory of views',
  snapshots: 'snapshots on their way',
  answers: 'answers on their way',
  bodies: 'bodies of writes',
};

const amount = (n: number, { unit }: LimitInUse) => (unit === 'bytes' ? bytes(n) : count(n));

function Watches({ rows, names }: { rows: readonly Row[]; names: readonly string[] }) {
  if (rows.length === 0) return <p className="soft">There are no watches.</p>;
  const columns: readonly Column<Row>[] = [
    { title: 'Watch', cell: (row) => <Name row={row} /> },
    ...names.map((title, i): Column<Row> => ({ title, cell: ({ of }) => <Place watch={of[i]} /> })),
  ];
  return (
    <section aria-label="Watches">
      <h3>How far they are</h3>
      <div className="card scroll" tabIndex={0} role="region" aria-label="Watches of the replicas">
        <Table columns={columns} rows={rows} keyOf={({ name }) => name} />
      </div>
    </section>
  );
}

function Name({ row: { name, split } }: { row: Row }) {
  return (
    <>
      {name}
      {split && <p className="failed">in different epochs</p>}
    </>
  );
}

function Place({ watch }: { watch: WatchOfReplica | undefined }) {
  if (!watch) return <span className="soft">not served</span>;
  return (
    <>
      <span className="state" data-state={watch.state} title={visible(watch.reason ?? '')}>
        {watch.state.replace('_', ' ')}
      </span>{' '}
      revision {watch.revision}
      {(watch.behind ?? 0n) > 0n && <strong className="failed"> {String(watch.behind)} behind</strong>}
      <div className="soft epoch">{watch.epoch && `epoch ${watch.epoch}`}</div>
      {watch.memory && <Memory of={watch.memory} watch={watch.name} />}
    </>
  );
}

/** What a watch holds, and what it serves of that: only the latter makes it stale. */
function Memory({ of: { used, most, served, most_served }, watch }: { of: MemoryInUse; watch: string }) {
  return (
    <div className="soft memory">
      memory {bytes(used)}
      {most !== undefined && ` of ${bytes(most)}`}, served {bytes(served)}
      {most_served !== undefined && ` of ${bytes(most_served)}`}
      {most_served !== undefined && (
        <meter min={0} max={1} high={0.8} value={served / most_served} aria-label={`memory of ${watch} in use`} />
      )}
    </div>
  );
}
