import type { Departure, Subscribers } from '@watchtide/protocol';
import { useNow } from '../app/clock';
import { count } from '../text/number';
import { meaning } from './reasons';

const minutes = 60;
const height = 80;

// What the gateway did to a client is told from what the client did.
const cut: ReadonlyArray<string> = ['write_timeout', 'aborted', 'overloaded', 'revoked'];

/** Shows how many subscribers disconnected in each minute of the last hour, and how many of them were cut off. */
export function Departures({ minutes: counted }: { minutes: Subscribers['left_minutes'] }) {
  const now = Math.floor(useNow() / 60_000);
  const most = Math.max(1, ...counted.map(({ reasons }) => sum(Object.values(reasons))));
  const totals = totalsOf(counted);
  return (
    <section aria-labelledby="departures" className="card histogram">
      <h3 id="departures">Disconnects in the last hour, by minute</h3>
      <svg
        className="bars"
        viewBox={`0 0 ${minutes * 10} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`At most ${count(most)} in a minute`}
      >
        {counted.map(({ minute, reasons }) => (
          <Bar key={minute} x={(minutes - 1 - (now - Date.parse(minute) / 60_000)) * 10} reasons={reasons} most={most} />
        ))}
        <path className="axis" d={`M0 ${height}H${minutes * 10}`} />
      </svg>
      <p className="soft scale">
        <span>60 min ago</span> <span>at most {count(most)} in a minute</span> <span>now</span>
      </p>
      <ul className="why">
        {totals.map(([reason, n]) => (
          <li key={reason} data-cut={cut.includes(reason) || undefined}>
            <code>{reason}</code> {count(n)} <span className="soft">{meaning(reason as Departure['reason'])}</span>
          </li>
        ))}
        {totals.length === 0 && <li className="soft">None.</li>}
      </ul>
    </section>
  );
}

function Bar({ x, reasons, most }: { x: number; reasons: Readonly<Record<string, number>>; most: number }) {
  const all = sum(Object.values(reasons));
  const off = sum(Object.entries(reasons).map(([reason, n]) => (cut.includes(reason) ? n : 0)));
  const tall = (n: number) => (n * (height - 2)) / most;
  return (
    <g>
      <title>
        {Object.entries(reasons)
          .map(([reason, n]) => `${reason} ${count(n)}`)
          .join(', ')}
      </title>
      <rect x={x + 1} width={8} y={height - tall(all)} height={tall(all - off)} />
      <rect className="far" x={x + 1} width={8} y={height - tall(off)} height={tall(off)} />
    </g>
  );
}

function totalsOf(counted: Subscribers['left_minutes']): [reason: string, n: number][] {
  const totals = new Map<string, number>();
  for (const { reasons } of counted) for (const [reason, n] of Object.entries(reasons)) totals.set(reason, (totals.get(reason) ?? 0) + n);
  return [...totals].toSorted(([, a], [, b]) => b - a);
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0);
