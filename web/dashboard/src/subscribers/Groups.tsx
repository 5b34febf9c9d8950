import { setOptions } from '../app/route';
import type { Subscribers } from '../gateway/contract';
import { bytes, count } from '../text/number';
import { type Property, properties, propertyName } from './selection';

interface Props {
  readonly selection: { readonly group: Property };
  readonly all: Subscribers;
}

/** Shows how many subscribers have what in common. A group selects its subscribers. */
export function Groups({ selection: { group }, all: { groups = [], others, count: connected } }: Props) {
  return (
    <section aria-labelledby="groups">
      <div className="bar">
        <h3 id="groups">Groups</h3>
        <label>
          by{' '}
          <select value={group} onChange={({ target }) => setOptions({ group: target.value })}>
            {properties.map((property) => (
              <option key={property} value={property}>
                {propertyName(property)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {groups.length === 0 && <p className="soft">None.</p>}
      {groups.length > 0 && (
        <div className="card scroll">
          <table className="plain groups" aria-labelledby="groups">
            <thead>
              <tr>
                <th scope="col">{propertyName(group)[0]!.toUpperCase() + propertyName(group).slice(1)}</th>
                <th scope="col" className="number">
                  Subscribers
                </th>
                <th scope="col" className="share">
                  Share
                </th>
                <th scope="col" className="number">
                  Events
                </th>
                <th scope="col" className="number">
                  Bytes
                </th>
                <th scope="col" className="number">
                  Highest lag
                </th>
              </tr>
            </thead>
            <tbody>
              {groups.map((one) => (
                <tr key={one.name}>
                  <th scope="row">
                    <button type="button" className="as-link" onClick={() => setOptions({ [group]: one.name, after: undefined })}>
                      {one.name}
                    </button>
                  </th>
                  <Figures of={one} all={connected} />
                </tr>
              ))}
              {others && (
                <tr>
                  <th scope="row" className="soft">
                    others
                  </th>
                  <Figures of={others} all={connected} />
                </tr>
              )}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Figures({ of, all }: { of: NonNullable<Subscribers['others']>; all: number }) {
  return (
    <>
      <td className="number">{count(of.count)}</td>
      <td className="share">
        <meter max={Math.max(1, all)} value={Math.min(of.count, all)} aria-label={`${count(of.count)} of ${count(all)}`} />
      </td>
      <td className="number">{count(of.events)}</td>
      <td className="number">{bytes(of.bytes)}</td>
      <td className="number">{of.lag.max > 0 ? <strong>{count(of.lag.max)}</strong> : 0}</td>
    </>
  );
}
