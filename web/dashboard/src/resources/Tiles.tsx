import type { CountedGroup } from '@watchtide/client/counts';
import { useMemo } from 'react';
import { setOptions } from '../app/route';
import { useCounts } from '../gateway/tide';
import { split } from '../query/cel';
import { isMistake, parseQuery, type Query } from '../query/query';
import { count } from '../text/number';
import { Badge } from './Badge';
import { columnPath } from './column';
import { has, toggled } from './facet';
import type { TableModel } from './table';
import { type ShownColumn, searchedIn } from './useColumns';
import { useLoadedCounts, type WordCounts } from './useLoadedCounts';
import type { Source } from './useSource';
import { filterIn } from './useTableModel';

// More words do not fit above a table.
const most = 10;

interface Props {
  readonly watch: string;
  readonly model: TableModel;
  readonly source: Source;
  readonly filter: string;
  readonly prefix: string;
  readonly columns: readonly ShownColumn[];
}

const none: Query = [];

/**
 * How many resources have each word of the first enumeration, among those that the rest of the filter selects. The gateway
 * counts those of a large watch, and the page those of others. A click filters by a word, and a second one no more.
 */
export function Tiles({ watch, model, source, filter, prefix, columns }: Props) {
  const column = columns.find(({ id, enumeration }) => enumeration && columnPath(id).length > 0);
  const id = column?.id ?? '';
  const others = useMemo(() => queryWithout(filter, id), [filter, id]);
  const byGateway = useGatewayCounts(column && source.window && others && watch, id, others ?? none, prefix, columns);
  const rest = useMemo(() => filterIn(prefix, others ?? none), [prefix, others]);
  const byPage = useLoadedCounts(column && source.store && source.cel === '' && others ? model : undefined, id, rest);
  const counts = byGateway ?? byPage;
  if (!column || !counts || counts.words.size === 0) return null;
  const words = [...counts.words].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return (
    <fieldset className="bar tiles" aria-label={`Resources by ${column.title}`} data-total={counts.total}>
      {words.slice(0, most).map(([word, n]) => (
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

function useGatewayCounts(
  watch: string | undefined,
  id: string,
  others: Query,
  prefix: string,
  columns: readonly ShownColumn[],
): WordCounts | undefined {
  const { cel, rest } = split(others, searchedIn(columns));
  const by = columnPath(id)
    .map((name) => JSON.stringify(name))
    .join('.');
  const counts = useCounts(rest.length === 0 ? watch : undefined, { by, filter: cel, prefix });
  return useMemo(() => counts && { total: counts.total, words: new Map([...counts.groups.values()].flatMap(wordOf)) }, [counts]);
}

const wordOf = ({ values: [word], count }: CountedGroup): Array<[string, number]> =>
  typeof word === 'string' && word !== '' ? [[word, count]] : [];

// A filter without the conditions on a field; undefined if it has a mistake.
function queryWithout(filter: string, field: string): Query | undefined {
  const query = parseQuery(filter);
  return isMistake(query) ? undefined : query.filter((term) => term.kind !== 'field' || term.field !== field);
}
