import { Age } from '../app/Age';
import { Figure } from '../app/Figure';
import { useNarrow } from '../app/narrow';
import { setOptions } from '../app/route';
import type { Subscriber } from '../gateway/contract';
import { bytes, count } from '../text/number';
import { Client, Subscribed, transport } from './Client';

interface Listed {
  readonly subscribers: readonly Subscriber[];
  readonly of: number;
  /** Where the page begins, see Selection; and where the next one does, undefined if there is none. */
  readonly after?: string | undefined;
  readonly next?: string | undefined;
}

/** Shows one page of the connected subscribers, with the highest lag first. */
export function Connected({ subscribers, of, after, next }: Listed) {
  const narrow = useNarrow();
  return (
    <section aria-labelledby="present">
      <div className="bar">
        <h3 id="present">Connected</h3>
        {subscribers.length < of && (
          <span className="soft">
            {after ? `${count(subscribers.length)} more` : `the ${count(subscribers.length)} with the highest lag`}, of {count(of)}
          </span>
        )}
        {(after || next) && (
          <span className="push">
            <button type="button" disabled={!after} onClick={() => setOptions({ after: undefined }, true)}>
              First page
            </button>{' '}
            <button type="button" disabled={!next} onClick={() => setOptions({ after: next }, true)}>
              Next page
            </button>
          </span>
        )}
      </div>
      {subscribers.length === 0 && <p className="soft">None.</p>}
      {subscribers.length > 0 && (narrow ? <Cards subscribers={subscribers} /> : <Table subscribers={subscribers} />)}
    </section>
  );
}

function Table({ subscribers }: { subscribers: readonly Subscriber[] }) {
  return (
    <div className="card scroll">
      <table className="plain people" aria-labelledby="present">
        <thead>
          <tr>
            <th scope="col">Client</th>
            <th scope="col">Watches, position</th>
            <th scope="col">Transport</th>
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
              Lag
            </th>
            <th scope="col" className="number">
              Skipped
            </th>
          </tr>
        </thead>
        <tbody>
          {subscribers.map((subscriber) => (
            <Row key={subscriber.id} subscriber={subscriber} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ subscriber }: { subscriber: Subscriber }) {
  return (
    <tr>
      <th scope="row">
        <Client subscriber={subscriber} />
      </th>
      <td>
        <Subscribed subscriber={subscriber} />
      </td>
      <td>{transport(subscriber)}</td>
      <td className="number">
        <Age of={subscriber.since} />
      </td>
      <td className="number">{count(subscriber.events)}</td>
      <td className="number">{bytes(subscriber.bytes)}</td>
      <td className="number">
        <Lag subscriber={subscriber} />
      </td>
      <td className="number">{count(subscriber.skipped)}</td>
    </tr>
  );
}

function Cards({ subscribers }: { subscribers: readonly Subscriber[] }) {
  return (
    <ul className="cards" aria-labelledby="present">
      {subscribers.map((subscriber) => (
        <li key={subscriber.id} className="card">
          <div className="head">
            <Client subscriber={subscriber} /> <span className="soft">{transport(subscriber)}</span>
          </div>
          <dl>
            <Figure name="Watches, position" wide>
              <Subscribed subscriber={subscriber} />
            </Figure>
            <Figure name="Connected for">
              <Age of={subscriber.since} />
            </Figure>
            <Figure name="Events">{count(subscriber.events)}</Figure>
            <Figure name="Bytes">{bytes(subscriber.bytes)}</Figure>
            <Figure name="Lag">
              <Lag subscriber={subscriber} />
            </Figure>
            <Figure name="Skipped">{count(subscriber.skipped)}</Figure>
          </dl>
        </li>
      ))}
    </ul>
  );
}

function Lag({ subscriber: { lag, catching_up: behind } }: { subscriber: Subscriber }) {
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
