import type { ListedView } from '../gateway/contract';
import { bytes, count } from '../text/number';

/** Shows the largest of the views that clients have asked for; nothing if there is none. */
export function Views({ views }: { views: readonly ListedView[] }) {
  if (views.length === 0) return null;
  return (
    <section aria-labelledby="views">
      <h3 id="views">Largest views</h3>
      <div className="card scroll">
        <table className="plain" aria-labelledby="views">
          <thead>
            <tr>
              <th scope="col">Watch</th>
              <th scope="col">Part</th>
              <th scope="col" className="number">
                Subscribers
              </th>
              <th scope="col" className="number">
                Resources
              </th>
              <th scope="col" className="number">
                Memory
              </th>
            </tr>
          </thead>
          <tbody>
            {views.map((view) => (
              <Row key={JSON.stringify([view.watch, partOf(view)])} view={view} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ view }: { view: ListedView }) {
  return (
    <tr>
      <th scope="row">{view.watch}</th>
      <td>
        {partOf(view).map(([name, value]) => (
          <div key={name}>
            {name} <code>{value}</code>
          </div>
        ))}
      </td>
      <td className="number">{count(view.subscribers)}</td>
      <td className="number">{count(view.resources)}</td>
      <td className="number">{bytes(view.bytes)}</td>
    </tr>
  );
}

const partOf = ({ prefix, labels, filter, fields }: ListedView) =>
  Object.entries({ prefix, labels, filter, fields }).filter((entry): entry is [string, string] => Boolean(entry[1]));
