import { Figure } from '../app/Figure';
import type { Rates } from '../charts/rates';
import type { Watch } from '../gateway/contract';
import { bytes, count } from '../text/number';
import { Changes } from './Changes';
import { LastError } from './LastError';
import { OfWhole } from './OfWhole';
import { State } from './State';
import { Names } from './WatchTable';

/** Shows the watches as cards, on a page that is too narrow for a table. */
export function WatchCards({ watches, rates }: { watches: readonly Watch[]; rates: Rates }) {
  return (
    <ul className="cards" aria-label="Watches">
      {watches.map((watch) => (
        <Card key={watch.name} watch={watch} rates={rates} />
      ))}
    </ul>
  );
}

function Card({ watch, rates }: { watch: Watch; rates: Rates }) {
  return (
    <li className="card" data-testid="watch-row" data-watch={watch.name}>
      <div className="head">
        <Names watch={watch} />{' '}
        <span className="stated">
          <State watch={watch} />
        </span>
      </div>
      <dl>
        <Figure name="Resources">
          <OfWhole watch={watch}>{count(watch.count)}</OfWhole>
        </Figure>
        <Figure name="Subscribers">
          <OfWhole watch={watch}>{count(watch.subscribers)}</OfWhole>
        </Figure>
        <Figure name="Bytes held">
          <OfWhole watch={watch}>{bytes(watch.bytes)}</OfWhole>
        </Figure>
        <Figure name="Changes per second" wide>
          <Changes samples={rates.of(watch.name)} />
        </Figure>
        <Figure name="Revision, epoch" wide>
          <code>{watch.revision}</code> <code className="soft">{watch.epoch}</code>
        </Figure>
        <Figure name="Last upstream error" wide>
          <LastError watch={watch} />
        </Figure>
      </dl>
    </li>
  );
}
