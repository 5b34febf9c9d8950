import type { Subscribers } from '@watchtide/protocol';
import { type Column, DataTable } from '../app/DataTable';
import { setOptions } from '../app/route';
import { bytes, count } from '../text/number';
import { type Property, properties, propertyName } from './selection';

interface Props {
  readonly selection: { readonly group: Property };
  readonly all: Subscribers;
}

/** A group; without a name: all the others. */
type Group = NonNullable<Subscribers['others']> & { readonly name?: string };

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
      {groups.length === 0 ? (
        <p className="soft">None.</p>
      ) : (
        <DataTable<Group>
          labelledBy="groups"
          className="groups"
          columns={columnsOf(group, connected)}
          rows={others ? [...groups, others] : groups}
          keyOf={({ name }) => (name === undefined ? 'others' : `group ${name}`)}
        />
      )}
    </section>
  );
}

const columnsOf = (property: Property, all: number): readonly Column<Group>[] => [
  { title: propertyName(property)[0]!.toUpperCase() + propertyName(property).slice(1), cell: ({ name }) => nameOf(property, name) },
  { title: 'Subscribers', cell: (one) => count(one.count), numeric: true },
  { title: 'Share', cell: (one) => share(one.count, all), className: 'share' },
  { title: 'Events', cell: ({ events }) => count(events), numeric: true },
  { title: 'Bytes', cell: (one) => bytes(one.bytes), numeric: true },
  { title: 'Highest lag', cell: ({ lag }) => (lag.max > 0 ? <strong>{count(lag.max)}</strong> : 0), numeric: true },
];

const nameOf = (property: Property, name: string | undefined) =>
  name === undefined ? (
    <span className="soft">others</span>
  ) : (
    <button type="button" className="as-link" onClick={() => setOptions({ [property]: name })}>
      {name}
    </button>
  );

const share = (n: number, all: number) => (
  <meter max={Math.max(1, all)} value={Math.min(n, all)} aria-label={`${count(n)} of ${count(all)}`} />
);
