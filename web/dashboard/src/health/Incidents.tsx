import { Age } from '../app/Age';
import { type Column, DataTable } from '../app/DataTable';
import { ValueText } from '../text/KeyText';
import { moment } from '../text/moment';
import { count } from '../text/number';
import type { WatchIncident } from './incidents';

// The number of incidents that are shown at once.
const most = 200;

/** Shows the incidents of the connections, the newest first. */
export function Incidents({ incidents }: { incidents: readonly WatchIncident[] }) {
  const shown = incidents.slice(0, most);
  return (
    <section aria-labelledby="incidents">
      <div className="bar">
        <h3 id="incidents">Incidents</h3>
        {shown.length < incidents.length && (
          <span className="soft">
            the newest {count(most)} of {count(incidents.length)}
          </span>
        )}
      </div>
      {shown.length === 0 && <p className="soft">No incidents.</p>}
      {shown.length > 0 && <DataTable labelledBy="incidents" className="incidents" columns={columns} rows={shown} keyOf={key} cards />}
    </section>
  );
}

// The first time of an incident stays the same while its count grows.
const key = ({ watch, kind, reason, first }: WatchIncident) => `${watch} ${kind} ${reason} ${first}`;

const columns: readonly Column<WatchIncident>[] = [
  { title: 'When', cell: (incident) => <When incident={incident} />, card: 'head' },
  { title: 'Watch', cell: ({ watch }) => <strong>{watch}</strong>, header: true },
  { title: 'Kind, reason', cell: (incident) => <What incident={incident} />, card: 'wide' },
  { title: 'Detail', cell: ({ detail }) => (detail ? <ValueText text={detail} /> : null), card: 'wide' },
];

function When({ incident: { at } }: { incident: WatchIncident }) {
  return (
    <span className="stack">
      <span className="number">{moment(Date.parse(at))}</span>{' '}
      <span className="soft">
        <Age of={at} /> ago
      </span>
    </span>
  );
}

function What({ incident: { kind, reason, times, first } }: { incident: WatchIncident }) {
  return (
    <span className="stack">
      <span>
        {kind}: <code>{reason}</code>
      </span>
      {times > 1 && (
        <span className="soft">
          {count(times)} times since {moment(Date.parse(first))}
        </span>
      )}
    </span>
  );
}
