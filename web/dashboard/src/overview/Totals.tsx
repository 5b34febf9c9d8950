import '../app/cards.css';
import { mean, type Rates } from '../charts/rates';
import type { Watch } from '../gateway/contract';
import { count, rate } from '../text/number';

/** Shows the totals of all watches. */
export function Totals({ watches, rates }: { watches: readonly Watch[]; rates: Rates }) {
  const inSync = watches.filter(({ state }) => state === 'in_sync').length;
  const known = watches.map(({ name }) => mean(rates.of(name), 5000)).filter((perSecond) => !Number.isNaN(perSecond));
  return (
    <dl className="totals">
      <div className={inSync < watches.length ? 'bad' : ''}><dt>In sync</dt><dd>{count(inSync)} <small>of {count(watches.length)}</small></dd></div>
      <div><dt>Resources</dt><dd>{count(sum(watches.map((watch) => watch.count)))}</dd></div>
      {known.length > 0 && <div><dt>Changes per second</dt><dd>{rate(sum(known))}</dd></div>}
      <div><dt>Subscriptions</dt><dd>{count(sum(watches.map((watch) => watch.subscribers)))}</dd></div>
    </dl>
  );
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0);
