import { Age } from '../app/Age';
import { useNarrow } from '../app/narrow';
import { ValueText } from '../text/KeyText';
import { moment } from '../text/moment';
import { count } from '../text/number';
import type { WatchIncident } from './incidents';

// The number of incidents that are shown at once.
const most = 200;

/** Shows the incidents of the connections, the newest first. */
export function Incidents({ incidents }: { incidents: readonly WatchIncident[] }) {
  const narrow = useNarrow();
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
      {shown.length > 0 && (narrow ? <Cards incidents={shown} /> : <Table incidents={shown} />)}
    </section>
  );
}

function Table({ incidents }: { incidents: readonly WatchIncident[] }) {
  return (
    <div className="card scroll">
      <table className="plain incidents" aria-labelledby="incidents">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Watch</th>
            <th scope="col">Kind, reason</th>
            <th scope="col">Detail</th>
          </tr>
        </thead>
        <tbody>
          {incidents.map((incident) => (
            <tr key={key(incident)}>
              <td>
                <When incident={incident} />
              </td>
              <th scope="row">{incident.watch}</th>
              <td>
                <What incident={incident} />
              </td>
              <td>
                <ValueText text={incident.detail ?? ''} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cards({ incidents }: { incidents: readonly WatchIncident[] }) {
  return (
    <ul className="cards incidents" aria-labelledby="incidents">
      {incidents.map((incident) => (
        <li key={key(incident)} className="card">
          <div className="head">
            <span className="stack">
              <strong>{incident.watch}</strong> <What incident={incident} />
            </span>{' '}
            <When incident={incident} />
          </div>
          {incident.detail && (
            <p>
              <ValueText text={incident.detail} />
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

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

// The first time of an incident stays the same while its count grows.
const key = ({ watch, kind, reason, first }: WatchIncident) => `${watch} ${kind} ${reason} ${first}`;
