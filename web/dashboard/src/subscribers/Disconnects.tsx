import type { Departure } from '@watchtide/protocol';
import { type Column, DataTable } from '../app/DataTable';
import { count } from '../text/number';
import { disconnected } from './columns';
import { meaning } from './reasons';

type Counted = [reason: Departure['reason'], times: number];

/** Shows recent disconnects, and their reasons. */
export function Disconnects({ left, reasons }: { left: readonly Departure[]; reasons: Readonly<Record<string, number>> }) {
  const counted = (Object.entries(reasons) as Counted[]).toSorted(([, a], [, b]) => b - a);
  return (
    <>
      <section aria-labelledby="reasons">
        <h3 id="reasons">Disconnects by reason, for all watches since the gateway started</h3>
        {counted.length === 0 ? (
          <p className="soft">None yet.</p>
        ) : (
          <DataTable labelledBy="reasons" className="reasons" columns={reasonColumns} rows={counted} keyOf={([reason]) => reason} />
        )}
      </section>
      <section aria-labelledby="left">
        <h3 id="left">Recent disconnects</h3>
        {left.length === 0 ? (
          <p className="soft">None yet.</p>
        ) : (
          <DataTable labelledBy="left" className="people" columns={disconnected} rows={left} keyOf={({ id }) => id} cards />
        )}
      </section>
    </>
  );
}

const reasonColumns: readonly Column<Counted>[] = [
  { title: 'Reason', cell: ([reason]) => <code>{reason}</code> },
  { title: 'Meaning', cell: ([reason]) => meaning(reason) },
  { title: 'Count', cell: ([, times]) => count(times), numeric: true },
];
