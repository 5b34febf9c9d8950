import type { ListedView } from '@watchtide/protocol';
import { type Column, DataTable } from '../app/DataTable';
import { bytes, count } from '../text/number';

/** Shows the largest of the views that clients have asked for; nothing if there is none. */
export function Views({ views }: { views: readonly ListedView[] }) {
  if (views.length === 0) return null;
  return (
    <section aria-labelledby="views">
      <h3 id="views">Largest views</h3>
      <DataTable labelledBy="views" columns={columns} rows={views} keyOf={(view) => JSON.stringify([view.watch, partOf(view)])} />
    </section>
  );
}

const columns: readonly Column<ListedView>[] = [
  { title: 'Watch', cell: ({ watch }) => watch },
  { title: 'Part', cell: (view) => partOf(view).map(([name, value]) => <Part key={name} name={name} value={value} />) },
  { title: 'Subscribers', cell: ({ subscribers }) => count(subscribers), numeric: true },
  { title: 'Resources', cell: ({ resources }) => count(resources), numeric: true },
  { title: 'Memory', cell: (view) => bytes(view.bytes), numeric: true },
];

const Part = ({ name, value }: { name: string; value: string }) => (
  <div>
    {name} <code>{value}</code>
  </div>
);

const partOf = ({ prefix, labels, filter, fields }: ListedView) =>
  Object.entries({ prefix, labels, filter, fields }).filter((entry): entry is [string, string] => Boolean(entry[1]));
