import type { Departure, Subscriber } from '@watchtide/protocol';
import { Age } from '../app/Age';
import type { Column } from '../app/DataTable';
import { duration } from '../text/duration';
import { bytes, count } from '../text/number';
import { Client, Subscribed } from './Client';
import { meaning } from './reasons';

const client: Column<Subscriber> = { title: 'Client', cell: (one) => <Client subscriber={one} /> };
const watches: Column<Subscriber> = {
  title: 'Watches, position',
  cell: (one) => <Subscribed subscriber={one} />,
  card: 'wide',
};
const events: Column<Subscriber> = { title: 'Events', cell: (one) => count(one.events), numeric: true };
const amount: Column<Subscriber> = { title: 'Bytes', cell: (one) => bytes(one.bytes), numeric: true };
const skipped: Column<Subscriber> = { title: 'Skipped', cell: (one) => count(one.skipped), numeric: true };

/** The columns of the subscribers that are connected. */
export const connected: readonly Column<Subscriber>[] = [
  client,
  watches,
  { title: 'Transport', cell: ({ transport, encoding }) => (encoding ? `${transport}, ${encoding}` : transport), card: 'head' },
  { title: 'Connected for', cell: ({ since }) => <Age of={since} />, numeric: true },
  events,
  amount,
  { title: 'Lag', cell: (one) => <Lag of={one} />, numeric: true },
  skipped,
];

/** The columns of the subscribers that have disconnected. */
export const disconnected: readonly Column<Departure>[] = [
  client,
  watches,
  { title: 'Reason', cell: ({ reason }) => <code title={meaning(reason)}>{reason}</code>, card: 'head' },
  { title: 'Disconnected', cell: ({ left }) => <Ago of={left} />, card: 'head', numeric: true },
  { title: 'Connected for', cell: ({ since, left }) => duration(Math.max(0, Date.parse(left) - Date.parse(since))), numeric: true },
  events,
  amount,
  { ...skipped, card: 'none' },
];

function Ago({ of }: { of: string }) {
  return (
    <>
      <Age of={of} /> ago
    </>
  );
}

function Lag({ of: { lag, catching_up: behind } }: { of: Subscriber }) {
  return (
    <>
      {lag > 0 ? <strong>{count(lag)}</strong> : 0}
      {behind && (
        <>
          <br />
          <span className="state">catching up</span>
        </>
      )}
    </>
  );
}
