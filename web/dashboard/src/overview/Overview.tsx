import type { Watch } from '@watchtide/protocol';
import { DataTable, type Sort } from '../app/DataTable';
import { useNarrow } from '../app/narrow';
import { setOptions, useRoute } from '../app/route';
import { type Trouble, useTroubles } from '../app/troubles';
import { Answering } from '../charts/Answering';
import { changesOf, fillChanges } from '../charts/changes';
import { useEarlier } from '../charts/earlier';
import type { Rates } from '../charts/rates';
import { useWatches } from '../gateway/watches';
import { columnsOf } from './columns';
import { arrange } from './order';
import { Totals } from './Totals';
import './Overview.css';

// With more watches than this, there is a filter.
const few = 12;

/** Shows every watch and its state. */
export function Overview() {
  const answer = useWatches();
  const watches = answer.data?.watches;
  useTroubles((watches ?? []).flatMap(troubles));
  useEarlier(answer, fillChanges);
  return (
    <div className="overview page">
      <h2>Watches</h2>
      {!watches && <p className="soft">Waiting for the gateway…</p>}
      {watches?.length === 0 && <NoWatches />}
      {watches && watches.length > 0 && <Watches watches={watches} rates={changesOf(answer)} />}
    </div>
  );
}

function Watches({ watches, rates }: { watches: readonly Watch[]; rates: Rates }) {
  const { options } = useRoute();
  const narrow = useNarrow();
  const filter = options.get('filter') ?? '';
  const filterable = watches.length > few || filter !== '';
  const columns = columnsOf(rates);
  const orders = columns.flatMap(({ sort }) => sort ?? []);
  const order = orders.find(({ by }) => by === options.get('sort')) ?? orders[0]!;
  const onSort = (by: string) => setOptions({ sort: by === orders[0]!.by ? undefined : by });
  const shown = arrange(watches, order, filter);
  return (
    <>
      <Answering instances={rates.instances} />
      <Totals watches={watches} rates={rates} />
      {(filterable || narrow) && (
        <div className="bar">
          {filterable && <Filter text={filter} />}
          {filterable && (
            <span className="soft" role="status">
              {filter && `${shown.length} of ${watches.length}`}
            </span>
          )}
          {narrow && <OrderChoice orders={orders} order={order} onSort={onSort} />}
        </div>
      )}
      {shown.length === 0 && <p>No watch has “{filter}” in its name, source or state.</p>}
      {shown.length > 0 && (
        <DataTable
          caption="Watches, renewed every second"
          columns={columns}
          rows={shown}
          keyOf={({ name }) => name}
          sorted={order}
          onSort={onSort}
          dataOf={({ name }) => ({ 'data-testid': 'watch-row', 'data-watch': name })}
          cards
        />
      )}
    </>
  );
}

function Filter({ text }: { text: string }) {
  return (
    <input
      type="search"
      aria-label="Filter"
      placeholder="Filter by name, source or state"
      value={text}
      onChange={({ target }) => setOptions({ filter: target.value || undefined })}
    />
  );
}

interface OrderProps {
  readonly orders: readonly Sort<Watch>[];
  readonly order: Sort<Watch>;
  readonly onSort: (by: string) => void;
}

function OrderChoice({ orders, order, onSort }: OrderProps) {
  return (
    <label>
      Sort by{' '}
      <select value={order.by} onChange={({ target }) => onSort(target.value)}>
        {orders.map(({ by }) => (
          <option key={by} value={by}>
            {by}
          </option>
        ))}
      </select>
    </label>
  );
}

function NoWatches() {
  return (
    <div className="card none">
      <h3>This gateway has no watches</h3>
      <p>A watch is a named collection at a source. Watches are defined in the gateway’s configuration:</p>
      <pre>{'sources:\n  local: { type: store }\nwatches:\n  notes: { source: local }'}</pre>
      <p>
        With <code>--demo</code>, the gateway watches this machine’s processes, interfaces and mounts.
      </p>
    </div>
  );
}

function troubles({ name, state, since, reason }: Watch): Trouble[] {
  if (state === 'in_sync') return [];
  return [{ what: name, state, since: since ? Date.parse(since) : 0, reason: reason ?? '' }];
}
