import type { CountedGroup } from '@watchtide/client/counts';
import type { Topology } from '@watchtide/protocol';
import { href } from '../app/route';
import { useCounts } from '../gateway/tide';
import { Badge } from '../resources/Badge';
import { toggled } from '../resources/facet';
import { count } from '../text/number';
import { parentsOf } from './graph';

// More do not fit above the diagram.
const mostCounts = 4;
const mostGroups = 10;

/**
 * The counts that the configuration declares, as they change, the largest groups first. A click shows the resources of a group. Those of
 * templates are left out: to follow them would keep them.
 */
export function Counts({ topology }: { topology: Topology }) {
  const parents = parentsOf(topology);
  return topology.watches
    .filter(({ by, template }) => by !== undefined && template === undefined)
    .sort((a, b) => a.name.localeCompare(b.name))
    .slice(0, mostCounts)
    .map(({ name, by = '' }) => <Tiles key={name} name={name} by={by} of={parents.get(name) ?? ''} />);
}

interface Props {
  readonly name: string;
  readonly by: string;
  /** The watch that is counted; '' if it is not known. */
  readonly of: string;
}

function Tiles({ name, by, of }: Props) {
  const counts = useCounts(name);
  if (!counts || counts.groups.size === 0) return null;
  const groups = [...counts.groups.values()].sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1));
  return (
    <nav className="bar counted" aria-label={`${of || name} by ${by}`} data-count={name} data-total={counts.total}>
      <a href={href('watches', name)}>{name}</a>
      {groups.slice(0, mostGroups).map((group) => (
        <a key={group.key} className="tile" href={linkTo(group, { name, by, of })} title={`${of || name}: ${by} ${textOf(group)}`}>
          <Badge text={textOf(group)} /> {count(group.count)}
        </a>
      ))}
      {groups.length > mostGroups && <span className="soft">and {count(groups.length - mostGroups)} more</span>}
    </nav>
  );
}

const textOf = ({ values }: CountedGroup) => values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(', ');

// The names of the fields need no escapes.
const plainPath = /^[\w-]+(\.[\w-]+)*$/;

function linkTo({ values: [word] }: CountedGroup, { name, by, of }: Props): string {
  if (of === '' || !plainPath.test(by) || typeof word !== 'string' || word === '') return href('watches', name);
  return href('watches', of, new URLSearchParams({ filter: toggled('', by, word) }));
}
