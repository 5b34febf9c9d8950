import { setOptions } from '../app/route';
import { ValueText } from '../text/KeyText';
import { type Sort, sortText } from './order';
import type { ShownColumn } from './useColumns';

/** The column headers. A click sorts by a column, a second one in reverse. */
export function HeadRow({ columns, sort }: { columns: readonly ShownColumn[]; sort: Sort }) {
  return (
    <div role="rowgroup" className="head">
      <div role="row" className="row" aria-rowindex={1}>
        {columns.map((column) => (
          <Head key={column.id} column={column} sort={sort} />
        ))}
      </div>
    </div>
  );
}

function Head({ column: { id, title, numeric, naming, news }, sort }: { column: ShownColumn; sort: Sort }) {
  const sorted = sort.column === id;
  const direction = sorted ? (sort.descending ? 'descending' : 'ascending') : 'none';
  const sortBy = () => setOptions({ sort: sortText({ column: id, descending: sorted && !sort.descending }) });
  return (
    <div role="columnheader" className={`cell${naming ? ' name' : ''}${numeric ? ' number' : ''}`} aria-sort={direction}>
      <button type="button" onClick={sortBy} title={`Sort by ${title}`}>
        <span>
          <ValueText text={news ? `${title}, or last change` : title} />
        </span>
        {sorted && (
          <span className="direction" aria-hidden="true">
            {sort.descending ? '▼' : '▲'}
          </span>
        )}
      </button>
    </div>
  );
}
