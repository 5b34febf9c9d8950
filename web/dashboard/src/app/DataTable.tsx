import type { ReactNode } from 'react';
import { useNarrow } from './narrow';
import './cards.css';

/** A column of a table, and what a card shows of it. */
export interface Column<T> {
  readonly title: ReactNode;
  /** null: nothing, and a card leaves it out. */
  readonly cell: (row: T) => ReactNode;
  readonly numeric?: boolean;
  /** Its share of the width. With it on all columns, they do not move while their content changes. */
  readonly width?: number;
  /** The order that a press of the title selects. */
  readonly sort?: Sort<T>;
  /** It is the header of its row, and the head of a card. By default, the first column is. */
  readonly header?: boolean;
  /** Its place in a card: beside the header, over the whole width, or none; otherwise among the figures. */
  readonly card?: 'head' | 'wide' | 'none';
  /** Of its title, its cells, and its place in a card. */
  readonly className?: string;
}

/** An order of rows, by its name. */
export interface Sort<T> {
  readonly by: string;
  readonly compare: (a: T, b: T) => number;
}

/** The rows of a long list that are in the document; px is the height of those before and after them. */
export interface Slice {
  readonly first: number;
  readonly of: number;
  readonly px: { readonly before: number; readonly after: number };
}

interface Props<T> {
  /** The name of the table, or the id of its heading. */
  readonly caption?: string;
  readonly labelledBy?: string;
  readonly columns: readonly Column<T>[];
  /** undefined: it is being loaded. */
  readonly rows: readonly (T | undefined)[];
  readonly keyOf: (row: T) => string;
  readonly slice?: Slice;
  /** The order of the rows. */
  readonly sorted?: Sort<T> | undefined;
  readonly onSort?: (by: string) => void;
  /** The attributes of a row, or card. */
  readonly dataOf?: (row: T) => Readonly<Record<`data-${string}`, string>>;
  readonly className?: string;
  /** The titles are only read to those who do not see the table. */
  readonly untitled?: boolean;
}

/** Shows rows as a table in a frame; with cards, as cards on a phone. */
export function DataTable<T>({ cards = false, ...props }: Props<T> & { cards?: boolean }) {
  const narrow = useNarrow();
  if (cards && narrow) return <Cards {...props} />;
  return (
    <div className="card scroll">
      <Table {...props} />
    </div>
  );
}

/** Shows rows as a table. */
export function Table<T>(props: Props<T>) {
  const { caption, labelledBy, columns, rows, keyOf, slice, dataOf, className = '' } = props;
  return (
    <table className={`plain ${className}`.trim()} aria-labelledby={labelledBy} aria-rowcount={slice && slice.of + 1}>
      {caption && <caption className="visually-hidden">{caption}</caption>}
      <Widths columns={columns} />
      <Head {...props} />
      {slice && <Space columns={columns.length} height={slice.px.before} />}
      <tbody>
        {rows.map((row, i) => (
          <tr key={row ? keyOf(row) : i} aria-rowindex={slice && slice.first + i + 2} {...(row && dataOf?.(row))}>
            {row ? <Cells columns={columns} row={row} /> : <td colSpan={columns.length}>Loading…</td>}
          </tr>
        ))}
      </tbody>
      {slice && <Space columns={columns.length} height={slice.px.after} />}
    </table>
  );
}

function Widths<T>({ columns }: Pick<Props<T>, 'columns'>) {
  const all = columns.reduce((sum, { width = 0 }) => sum + width, 0);
  if (all === 0) return null;
  return (
    <colgroup>
      {columns.map(({ width = 0 }, i) => (
        <col key={i} style={{ width: `${(100 * width) / all}%` }} />
      ))}
    </colgroup>
  );
}

function Head<T>({ columns, sorted, onSort, untitled }: Props<T>) {
  return (
    <thead className={untitled ? 'visually-hidden' : undefined}>
      <tr>
        {columns.map((column, i) => {
          const { title, sort } = column;
          return (
            <th key={i} scope="col" className={classOf(column)} aria-sort={sort && sort === sorted ? 'ascending' : undefined}>
              {sort ? (
                <button type="button" className="sorter" onClick={() => onSort?.(sort.by)}>
                  {title}
                </button>
              ) : (
                title
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

interface RowProps<T> {
  readonly columns: readonly Column<T>[];
  readonly row: T;
}

function Cells<T>({ columns, row }: RowProps<T>) {
  const header = headerOf(columns);
  return columns.map((column, i) =>
    column === header ? (
      <th key={i} scope="row">
        {column.cell(row)}
      </th>
    ) : (
      <td key={i} className={classOf(column)}>
        {column.cell(row)}
      </td>
    ),
  );
}

function Space({ columns, height }: { columns: number; height: number }) {
  return (
    <tbody className="space" aria-hidden="true">
      <tr>
        <td colSpan={columns} style={{ height }} />
      </tr>
    </tbody>
  );
}

/** Shows rows as cards. */
export function Cards<T>({ caption, labelledBy, columns, rows, keyOf, slice, dataOf, className = '' }: Props<T>) {
  return (
    <ul
      className={`cards ${className}`.trim()}
      aria-label={caption}
      aria-labelledby={labelledBy}
      style={slice && { paddingTop: slice.px.before, paddingBottom: slice.px.after }}
    >
      {rows.map((row, i) => (
        <li
          key={row ? keyOf(row) : i}
          className="card"
          aria-setsize={slice?.of}
          aria-posinset={slice && slice.first + i + 1}
          {...(row && dataOf?.(row))}
        >
          {row ? <Card columns={columns} row={row} /> : 'Loading…'}
        </li>
      ))}
    </ul>
  );
}

function Card<T>({ columns, row }: RowProps<T>) {
  const header = headerOf(columns);
  const rest = columns.filter((column) => column !== header);
  const beside = rest.filter(({ card }) => card === 'head');
  return (
    <>
      <div className="head">
        {header.cell(row)}
        {beside.length > 0 && (
          <span>
            {beside.map(({ cell, className }, i) => (
              <div key={i} className={className}>
                {cell(row)}
              </div>
            ))}
          </span>
        )}
      </div>
      <dl>
        {rest.map(({ title, cell, card, className }, i) => {
          const content = card === 'head' || card === 'none' ? null : cell(row);
          if (content === null) return null;
          return (
            <div key={i} className={card === 'wide' ? 'wide' : undefined}>
              <dt>{title}</dt>
              <dd className={className}>{content}</dd>
            </div>
          );
        })}
      </dl>
    </>
  );
}

const headerOf = <T,>(columns: readonly Column<T>[]): Column<T> => columns.find(({ header }) => header) ?? columns[0]!;

const classOf = <T,>({ numeric, className = '' }: Column<T>) => [numeric ? 'number' : '', className].filter(Boolean).join(' ') || undefined;
