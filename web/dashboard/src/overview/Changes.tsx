import { mean } from '../charts/rates';
import { Sparkline } from '../charts/Sparkline';
import type { Sample } from '../charts/samples';
import { rate } from '../text/number';

// Long enough for the number to be readable while it changes.
const windowMs = 5000;

/** Shows the changes per second of a watch, now and over the last two minutes. */
export function Changes({ samples }: { samples: readonly Sample[] }) {
  const now = mean(samples, windowMs);
  return (
    <span className="rated">
      <span className="number">{Number.isNaN(now) ? '' : rate(now)}</span>
      {samples.length > 0 && <Sparkline samples={samples} />}
    </span>
  );
}
