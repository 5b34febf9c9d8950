import { Age } from '../app/Age';
import { Figure } from '../app/Figure';
import { useNarrow } from '../app/narrow';
import type { Departure } from '../gateway/contract';
import { duration } from '../text/duration';
import { bytes, count } from '../text/number';
import { Client, Subscribed } from './Client';
import { meaning } from './reasons';

/** Shows recent disconnects, and their reasons. */
export function Disconnects({ left, reasons }: { left: readonly Departure[]; reasons: Readonly<Record<string, number>> }) {
  const narrow = useNarrow();
  return (
    <>
      <Reasons reasons={reasons} />
      <section aria-labelledby="left">
        <h3 id="left">Recent disconnects</h3>
        {left.length === 0 && <p className="soft">None yet.</p>}
        {left.length > 0 && (narrow ? <Cards left={left} /> : <Table left={left} />)}
      </section>
    </>
  );
}

function Reasons({ reasons }: { reasons: Readonly<Record<string, number>> }) {
  const sorted = (Object.entries(reasons) as [Departure['reason'], number][]).toSorted(([, a], [, b]) => b - a);
  return (
    <section aria-labelledby="reasons">
      <h3 id="reasons">Disconnects by reason, for all watches since the gateway started</h3>
      {sorted.length === 0 && <p className="soft">None yet.</p>}
      {sorted.length > 0 && (
        <div className="card scroll">
          <table className="plain reasons" aria-labelledby="reasons">
            <thead>
              <tr>
                <th scope="col">Reason</th>
                <th scope="col">Meaning</th>
                <th scope="col" className="number">
                  Count
                </th>
              </tr>
            </thead>
            <tbody>
              {sorted.map(([reason, times]) => (
                <tr key={reason}>
                  <th scope="row">
                    <code>{reason}</code>
                  </th>
                  <td>{meaning(reason)}</td>
                  <td className="number">{count(times)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Table({ left }: { left: readonly Departure[] }) {
  return (
    <div className="card scroll">
      <table className="plain people" aria-labelledby="left">
        <thead>
          <tr>
            <th scope="col">Client</th>
            <th scope="col">Watches, position</th>
            <th scope="col">Reason</th>
            <th scope="col" className="number">
              Disconnected
            </th>
            <th scope="col" className="number">
              Connected for
            </th>
            <th scope="col" className="number">
              Events
            </th>
            <th scope="col" className="number">
              Bytes
            </th>
            <th scope="col" className="number">
              Skipped
            </th>
          </tr>
        </thead>
        <tbody>
          {left.map((departure) => (
            <Row key={departure.id} departure={departure} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ departure }: { departure: Departure }) {
  return (
    <tr>
      <th scope="row">
        <Client subscriber={departure} />
      </th>
      <td>
        <Subscribed subscriber={departure} />
      </td>
      <td>
        <code title={meaning(departure.reason)}>{departure.reason}</code>
      </td>
      <td className="number">
        <Age of={departure.left} /> ago
      </td>
      <td className="number">{lasted(departure)}</td>
      <td className="number">{count(departure.events)}</td>
      <td className="number">{bytes(departure.bytes)}</td>
      <td className="number">{count(departure.skipped)}</td>
    </tr>
  );
}

function Cards({ left }: { left: readonly Departure[] }) {
  return (
    <ul className="cards" aria-labelledby="left">
      {left.map((departure) => (
        <li key={departure.id} className="card">
          <div className="head">
            <Client subscriber={departure} />{' '}
            <span>
              <code>{departure.reason}</code>
              <br />
              <span className="soft">
                <Age of={departure.left} /> ago
              </span>
            </span>
          </div>
          <dl>
            <Figure name="Watches, position" wide>
              <Subscribed subscriber={departure} />
            </Figure>
            <Figure name="Connected for">{lasted(departure)}</Figure>
            <Figure name="Events">{count(departure.events)}</Figure>
            <Figure name="Bytes">{bytes(departure.bytes)}</Figure>
          </dl>
        </li>
      ))}
    </ul>
  );
}

const lasted = ({ since, left }: Departure) => duration(Math.max(0, Date.parse(left) - Date.parse(since)));
