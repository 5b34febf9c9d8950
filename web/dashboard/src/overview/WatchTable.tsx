import { href, setOptions } from '../app/route';
import type { Rates } from '../charts/rates';
import type { Watch } from '../gateway/contract';
import { bytes, count } from '../text/number';
import { Changes } from './Changes';
import { LastError } from './LastError';
import { OfWhole } from './OfWhole';
import type { Order } from './order';
import { State } from './State';

interface Shown {
  readonly watches: readonly Watch[];
  readonly rates: Rates;
}

// The widths are fixed, so that columns do not move while the numbers change.
const columns = ['of-name', 'of-state', 'of-count', 'of-changes', 'of-subscribers', 'of-position', 'of-bytes', 'of-error'];

/** Shows the watches as a table, on a page that is wide enough. */
export function WatchTable({ watches, rates, order }: Shown & { order: Order }) {
  return (
    <div className="card scroll">
      <table className="plain watches">
        <caption className="visually-hidden">Watches, renewed every second</caption>
        <colgroup>
          {columns.map((column) => (
            <col key={column} className={column} />
          ))}
        </colgroup>
        <thead>
          <tr>
            <Sorter by="name" order={order}>
              Watch
            </Sorter>
            <Sorter by="state" order={order}>
              State
            </Sorter>
            <th scope="col" className="number">
              Resources
            </th>
            <th scope="col">Changes per second</th>
            <th scope="col" className="number">
              Subscribers
            </th>
            <th scope="col">Revision, epoch</th>
            <th scope="col" className="number">
              Bytes held
            </th>
            <th scope="col">Last upstream error</th>
          </tr>
        </thead>
        <tbody>
          {watches.map((watch) => (
            <Row key={watch.name} watch={watch} rates={rates} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Sorter({ by, order, children }: { by: Order; order: Order; children: string }) {
  return (
    <th scope="col" aria-sort={order === by ? 'ascending' : undefined}>
      <button type="button" className="sorter" onClick={() => setOptions({ sort: by === 'name' ? undefined : by })}>
        {children}
      </button>
    </th>
  );
}

function Row({ watch, rates }: { watch: Watch; rates: Rates }) {
  return (
    <tr data-testid="watch-row" data-watch={watch.name}>
      <th scope="row">
        <Names watch={watch} />
      </th>
      <td className="stated">
        <State watch={watch} />
      </td>
      <td className="number">
        <OfWhole watch={watch}>{count(watch.count)}</OfWhole>
      </td>
      <td>
        <Changes samples={rates.of(watch.name)} />
      </td>
      <td className="number">
        <OfWhole watch={watch}>{count(watch.subscribers)}</OfWhole>
      </td>
      <td className="position">
        <code>{watch.revision}</code> <code className="soft">{watch.epoch}</code>
      </td>
      <td className="number">
        <OfWhole watch={watch}>{bytes(watch.bytes)}</OfWhole>
      </td>
      <td>
        <LastError watch={watch} />
      </td>
    </tr>
  );
}

/** Shows the source of a watch, and links to its pages. */
export function Names({ watch: { name, source } }: { watch: Watch }) {
  return (
    <span className="names">
      <a className="name" href={href('watches', name)}>
        {name}
      </a>
      <span className="soft">
        {source} ·{' '}
        <a href={href('stream', name)}>
          stream<span className="visually-hidden"> of {name}</span>
        </a>
      </span>
    </span>
  );
}
