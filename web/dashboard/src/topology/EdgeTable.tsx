import { type Column, DataTable } from '../app/DataTable';
import type { Edge, Graph } from './graph';
import { columns as order } from './layout';

/** The diagram as a table, for those who cannot see it. */
export function EdgeTable({ graph: { nodes, edges } }: { graph: Graph }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const title = (id: string) => {
    const { title, type } = byId.get(id)!;
    return type ? `${title} (${type})` : title;
  };
  const place = ({ from }: Edge) => order.indexOf(byId.get(from)!.column);
  const columns: readonly Column<Edge>[] = [
    { title: 'From', cell: ({ from }) => title(from) },
    { title: 'To', cell: ({ to }) => title(to) },
    { title: 'Freshness', cell: ({ freshness }) => (freshness === 'fresh' ? 'in sync' : freshness) },
    { title: 'Figures', cell: ({ label }) => label },
  ];
  return (
    <details className="as-table">
      <summary>The same as a table</summary>
      <DataTable
        caption="The way of the data"
        columns={columns}
        rows={edges.toSorted((a, b) => place(a) - place(b))}
        keyOf={({ from, to }) => `${from}>${to}`}
      />
    </details>
  );
}
