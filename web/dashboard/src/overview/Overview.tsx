import { useNarrow } from '../app/narrow';
import { setOptions, useRoute } from '../app/route';
import { type Trouble, useTroubles } from '../app/troubles';
import { Answering } from '../charts/Answering';
import { changesOf, fillChanges } from '../charts/changes';
import { useEarlier } from '../charts/earlier';
import type { Rates } from '../charts/rates';
import type { Watch } from '../gateway/contract';
import { useWatches } from '../gateway/watches';
import { arrange, parseOrder } from './order';
import { Totals } from './Totals';
import { WatchCards } from './WatchCards';
import { WatchTable } from './WatchTable';
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
  const order = parseOrder(options.get('sort'));
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
          {narrow && <OrderChoice order={order} />}
        </div>
      )}
      {shown.length === 0 && <p>No watch has “{filter}” in its name, source or state.</p>}
      {shown.length > 0 &&
        (narrow ? <WatchCards watches={shown} rates={rates} /> : <WatchTable watches={shown} rates={rates} order={order} />)}
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

function OrderChoice({ order }: { order: string }) {
  return (
    <label>
      Sort by{' '}
      <select value={order} onChange={({ target }) => setOptions({ sort: target.value === 'name' ? undefined : target.value })}>
        <option value="name">name</option>
        <option value="state">state</option>
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
