import type { Watch } from '@watchtide/protocol';
import { mean, type Rates } from '../charts/rates';
import { count, rate } from '../text/number';

/** Shows the totals of all watches. */
export function Totals({ watches, rates }: { watches: readonly Watch[]; rates: Rates }) {
  const whole = watches.filter(({ partial }) => !partial); // the others have no figures
  const inSync = watches.filter(({ state }) => state === 'in_sync').length;
  const known = watches.map(({ name }) => mean(rates.of(name), 5000)).filter((perSecond) => !Number.isNaN(perSecond));
  return (
    <dl className="totals">
      <div className={inSync < watches.length ? 'bad' : ''}>
        <dt>In sync</dt>
        <dd>
          {count(inSync)} <small>of {count(watches.length)}</small>
        </dd>
      </div>
      {whole.length > 0 && (
        <div>
          <dt>Resources</dt>
          <dd>
            {count(sum(whole.map((watch) => watch.count)))} <Of whole={whole} all={watches} />
          </dd>
        </div>
      )}
      {known.length > 0 && (
        <div>
          <dt>Changes per second</dt>
          <dd>{rate(sum(known))}</dd>
        </div>
      )}
      {whole.length > 0 && (
        <div>
          <dt>Subscriptions</dt>
          <dd>
            {count(sum(whole.map((watch) => watch.subscribers)))} <Of whole={whole} all={watches} />
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Says how many watches a total includes, if the user may see only a part of some. */
function Of({ whole, all }: { whole: readonly Watch[]; all: readonly Watch[] }) {
  return (
    whole.length < all.length && (
      <small>
        in {count(whole.length)} of {count(all.length)} watches
      </small>
    )
  );
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0);
