import type { Graph } from './graph';
import { columns } from './layout';

/** The diagram as a table, for those who cannot see it. */
export function EdgeTable({ graph: { nodes, edges } }: { graph: Graph }) {
  const titles = new Map(nodes.map(({ id, title, type }) => [id, type ? `${title} (${type})` : title]));
  const order = new Map(nodes.map(({ id, column }) => [id, columns.indexOf(column)]));
  const sorted = edges.toSorted((a, b) => order.get(a.from)! - order.get(b.from)!);
  return (
    <details className="as-table">
      <summary>The same as a table</summary>
      <div className="card scroll">
        <table className="plain">
          <caption className="visually-hidden">The way of the data</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col">To</th>
              <th scope="col">Freshness</th>
              <th scope="col">Figures</th>
            </tr>
          </thead>
          <tbody>
            {sorted.map(({ from, to, freshness, label }) => (
              <tr key={`${from}>${to}`}>
                <th scope="row">{titles.get(from)}</th>
                <td>{titles.get(to)}</td>
                <td>{freshness === 'fresh' ? 'in sync' : freshness}</td>
                <td>{label}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
