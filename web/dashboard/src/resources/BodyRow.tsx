import type { Resource } from '@watchtide/client';
import { memo } from 'react';
import { brief } from './brief';
import { Cell } from './Cell';
import { isTime, withUnit } from './format';
import { barOf } from './heat';
import type { ShownColumn } from './useColumns';
import { useNews } from './useNews';
import type { Ranges } from './useRanges';

/** Marks a row that was just created or deleted. */
export type Phase = 'new' | 'gone' | undefined;

interface Props {
  readonly id: string;
  readonly rowKey: string;
  readonly index: number;
  /** In px from the first row. */
  readonly y: number;
  readonly resource: Resource;
  readonly columns: readonly ShownColumn[];
  readonly ranges: Ranges;
  readonly phase: Phase;
  readonly active: boolean;
  readonly opened: boolean;
  readonly onOpen: (key: string, index: number) => void;
}

/** One resource. It is rendered again only when it or its place changes. */
export const BodyRow = memo(function BodyRow({ id, rowKey, index, y, resource, columns, ranges, phase, active, opened, onOpen }: Props) {
  return (
    <div
      role="row"
      id={id}
      className="row"
      tabIndex={-1}
      aria-rowindex={index + 2}
      aria-selected={opened}
      aria-hidden={phase === 'gone' || undefined}
      data-key={resource.key}
      data-phase={phase}
      data-active={active || undefined}
      data-odd={index % 2 === 1 || undefined}
      style={{ transform: `translateY(${y}px)` }}
      onClick={() => onOpen(rowKey, index)}
    >
      {columns.map((column) => {
        const Kind = column.news ? News : Value;
        return <Kind key={column.id} column={column} ranges={ranges} resource={resource} />;
      })}
    </div>
  );
});

interface ValueProps {
  readonly column: ShownColumn;
  readonly ranges: Ranges;
  readonly resource: Resource;
}

function News(props: ValueProps) {
  return <Value {...props} news={useNews(props.resource, props.column.id)} />;
}

function Value({ column, ranges, resource, news }: ValueProps & { news?: string }) {
  if (news) return <Cell text={news} kind="news" />;
  const value = column.get(resource);
  const bar = barOf(value, ranges.get(column.id));
  const raw = brief(value);
  const text = withUnit(value, column.unit) ?? raw;
  const isAge = column.time && isTime(value);
  return (
    <Cell
      text={text}
      raw={raw}
      kind={isAge ? 'time' : kind(column, value)}
      encoded={isEncoded(column, resource)}
      from={bar?.from}
      to={bar?.to}
    />
  );
}

const isEncoded = ({ id }: ShownColumn, { encoding, key_encoding }: Resource) =>
  (id === 'value' && encoding !== undefined) || (id === 'key' && key_encoding !== undefined);

function kind({ naming, numeric, enumeration }: ShownColumn, value: unknown): string {
  if (naming) return 'name';
  if (numeric) return 'number';
  if (enumeration && typeof value === 'string') return 'word';
  return value === null || typeof value === 'object' || typeof value === 'boolean' ? 'mono' : '';
}
