import type { CountedGroup } from '@watchtide/client/counts';
import { setOptions } from '../app/route';
import { useCounts } from '../gateway/tide';
import { split } from '../query/cel';
import { isMistake, parseQuery } from '../query/query';
import { count } from '../text/number';
import { Badge } from './Badge';
import { columnPath } from './column';
import { has, toggled } from './facet';
import { type ShownColumn, searchedIn } from './useColumns';

// More words do not fit above a table.
const most = 10;

interface Props {
  readonly watch: string;
  readonly filter: string;
  readonly prefix: string;
  readonly columns: readonly ShownColumn[];
}

/**
 * How many resources of a large watch have each word of its first enumeration, which the gateway counts: among those that the
 * rest of the filter selects. A click filters by a word, and a second one no more.
 */
export function Tiles({ watch, filter, prefix, columns }: Props) {
  const column = columns.find(({ id, enumeration }) => enumeration && columnPath(id).length > 0);
  const by = column
    ? columnPath(column.id)
        .map((name) => JSON.stringify(name))
        .join('.')
    : '';
  const others = column ? celWithout(filter, column.id, searchedIn(columns)) : undefined;
  const counts = useCounts(others === undefined ? undefined : watch, { by, filter: others ?? '', prefix });
  if (!column || !counts) return null;
  const groups = [...counts.groups.values()].filter(isWord).sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1));
  return (
    <fieldset className="bar tiles" aria-label={`Resources by ${column.title}`} data-total={counts.total}>
      {groups.slice(0, most).map(({ values: [word], count: n }) => (
        <button
          key={word}
          type="button"
          aria-pressed={has(filter, column.id, word)}
          title={`Only ${column.title} ${word}`}
          onClick={() => setOptions({ filter: toggled(filter, column.id, word) || undefined })}
        >
          <Badge text={word} /> {count(n)}
        </button>
      ))}
    </fieldset>
  );
}

type Word = CountedGroup & { readonly values: readonly [string] };

const isWord = (group: CountedGroup): group is Word => typeof group.values[0] === 'string' && group.values[0] !== '';

// What the gateway evaluates of a filter, without the conditions on a field; undefined if it cannot evaluate all of it.
function celWithout(filter: string, field: string, searched: readonly string[]): string | undefined {
  const query = parseQuery(filter);
  if (isMistake(query)) return undefined;
  const { cel, rest } = split(
    query.filter((term) => term.kind !== 'field' || term.field !== field),
    searched,
  );
  return rest.length === 0 ? cel : undefined;
}
