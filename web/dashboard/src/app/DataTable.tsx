import type { ReactNode } from 'react';
import { Figure } from './Figure';
import { useNarrow } from './narrow';
import './cards.css';

/** A column of a table. The first one is the header of its rows, and the head of a card. */
export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  readonly numeric?: boolean;
  /** Its place in a card: beside the first column, over the whole width, or none; otherwise among the figures. */
  readonly card?: 'head' | 'wide' | 'none';
  readonly className?: string;
}

interface Props<T> {
  /** The id of the heading. */
  readonly labelledBy: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly className?: string;
  /** On a phone, the rows are cards. */
  readonly cards?: boolean;
}

/** Shows rows as a table. */
export function DataTable<T>({ labelledBy, columns, rows, keyOf, className = '', cards = false }: Props<T>) {
  const narrow = useNarrow();
  if (cards && narrow) {
    return (
      <ul className="cards" aria-labelledby={labelledBy}>
        {rows.map((row) => (
          <li key={keyOf(row)} className="card">
            <CardContent columns={columns} row={row} />
          </li>
        ))}
      </ul>
    );
  }
  return (
    <div className="card scroll">
      <table className={`plain ${className}`} aria-labelledby={labelledBy}>
        <Head columns={columns} />
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              <Cells columns={columns} row={row} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The titles of the columns. */
export function Head<T>({ columns }: { columns: readonly Column<T>[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) => (
          <th key={column.title} scope="col" className={classOf(column)}>
            {column.title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface RowProps<T> {
  readonly columns: readonly Column<T>[];
  readonly row: T;
}

/** The cells of a row. */
export function Cells<T>({ columns: [first, ...rest], row }: RowProps<T>) {
  return (
    <>
      <th scope="row">{first!.cell(row)}</th>
      {rest.map((column) => (
        <td key={column.title} className={classOf(column)}>
          {column.cell(row)}
        </td>
      ))}
    </>
  );
}

/** The same as a card. */
export function CardContent<T>({ columns: [first, ...rest], row }: RowProps<T>) {
  const beside = rest.filter(({ card }) => card === 'head');
  return (
    <>
      <div className="head">
        {first!.cell(row)}
        {beside.length > 0 && (
          <span>
            {beside.map(({ title, cell }) => (
              <div key={title}>{cell(row)}</div>
            ))}
          </span>
        )}
      </div>
      <dl>
        {rest.map(({ title, cell, card }) =>
          card === 'head' || card === 'none' ? null : (
            <Figure key={title} name={title} wide={card === 'wide'}>
              {cell(row)}
            </Figure>
          ),
        )}
      </dl>
    </>
  );
}

const classOf = <T,>({ numeric, className = '' }: Column<T>) => [numeric ? 'number' : '', className].filter(Boolean).join(' ') || undefined;
