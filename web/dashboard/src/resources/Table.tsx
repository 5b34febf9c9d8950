import { type CSSProperties, type KeyboardEvent, type Ref, useEffect, useId, useImperativeHandle, useRef } from 'react';
import { count } from '../text/number';
import { BodyRow, type Phase } from './BodyRow';
import { HeadRow } from './HeadRow';
import type { Sort } from './order';
import { Places } from './Places';
import type { Row } from './row';
import type { TableModel, TableStatus } from './table';
import { useAnchor } from './useAnchor';
import type { ShownColumn } from './useColumns';
import { useConsistent } from './useConsistent';
import { useCursor } from './useCursor';
import { useKeptInView } from './useKeptInView';
import { useRanges } from './useRanges';
import { useTableStatus } from './useTableModel';
import { useVisibleRows } from './useVisibleRows';
import { useWidth } from './useWidth';
import './Table.css';

interface Props {
  readonly watch: string;
  readonly model: TableModel;
  readonly columns: readonly ShownColumn[];
  readonly sort: Sort;
  /** The key of the resource whose detail is open. */
  readonly opened: string | undefined;
  readonly onOpen: (key: string) => void;
  readonly onMove: (key: string) => void;
  readonly onClose: () => void;
  /** Gets what handles the keys of the table, for keys that are pressed elsewhere. */
  readonly keys: Ref<(event: KeyboardEvent) => void>;
  /** Called with the width of the table in characters. */
  readonly onWidth: (characters: number) => void;
}

// The time for which a new resource is marked.
const newMs = 2000;

// The keys stay in view when the table is scrolled sideways: on a phone they must
// leave room for the rest.
const maxKeyWidth = '45vw';

/** The resources of a watch. Only the rows on the screen are in the document. */
export function Table({ watch, model, columns, sort, opened, onOpen, onMove, onClose, keys, onWidth }: Props) {
  const status = useTableStatus(model);
  const grid = useRef<HTMLDivElement>(null);
  const id = useId();
  useWidth(grid, onWidth);
  const ranges = useRanges(model, columns);
  const { rows } = model;
  const seen = useVisibleRows(grid, rows.length);
  const { first, last } = seen;
  const drawn = rows.slice(first, last);
  useLook(model, drawn, first, last);
  useAnchor(model, status, seen, sort.column === 'key');
  useConsistent(status.state);
  useSorted(seen.toTop, sort);
  const cursor = useCursor(model.rows, {
    page: Math.max(1, seen.whole - 1),
    reveal: seen.reveal,
    opened,
    onOpen,
    onMove,
    onClose: opened === undefined ? undefined : onClose,
  });
  useImperativeHandle(keys, () => cursor.onKeyDown);
  const active = drawn.findIndex(({ key }) => key === cursor.key);
  useKeptInView(active < 0 ? -1 : first + active, seen);
  return (
    <>
      <div
        ref={grid}
        role="grid"
        id={`${id}grid`}
        className="resource-grid card"
        tabIndex={0}
        aria-label={`Resources of ${watch}`}
        aria-rowcount={status.matching + 1}
        aria-colcount={columns.length}
        aria-busy={status.arranging}
        aria-activedescendant={active >= 0 ? `${id}${first + active}` : undefined}
        onKeyDown={cursor.onKeyDown}
        data-testid="resources"
        data-state={status.state}
        data-elsewhere={drawn.length > 0 && rows.at(first) === undefined ? '' : undefined}
        data-count={status.total}
        data-revision={status.revision}
        style={layout(columns, seen.rowHeight)}
      >
        <HeadRow columns={columns} sort={sort} />
        <div role="rowgroup" className="body" style={{ height: seen.height }}>
          {drawn.map((row, i) => (
            <BodyRow
              key={row.key}
              id={`${id}${first + i}`}
              rowKey={row.key}
              index={first + i}
              y={seen.y(first + i)}
              resource={row.resource}
              columns={columns}
              ranges={ranges}
              phase={phase(row)}
              active={i === active}
              opened={row.key === opened}
              onOpen={cursor.open}
            />
          ))}
        </div>
        {rows.length === 0 && <p className="none">{emptyText(status)}</p>}
      </div>
      <Places watch={watch} model={model} status={status} sort={sort} seen={seen} controls={`${id}grid`} />
    </>
  );
}

// Tells the model what is on the screen.
function useLook(model: TableModel, drawn: readonly Row[], first: number, last: number): void {
  useEffect(() => {
    model.visible = new Set(drawn.map(({ key }) => key));
    model.look(first, last);
  });
}

// Scrolls to the top when the order changes.
function useSorted(toTop: () => void, { column, descending }: Sort): void {
  const first = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are the order
  useEffect(() => {
    if (!first.current) toTop();
    first.current = false;
  }, [toTop, column, descending]);
}

function phase({ createdAt, deletedAt }: Row): Phase {
  if (deletedAt > 0) return 'gone';
  return createdAt > 0 && performance.now() - createdAt < newMs ? 'new' : undefined;
}

function emptyText({ state, revision, total, arranging }: TableStatus): string {
  if (arranging) return 'Loading…';
  if (total > 0) return `None of ${count(total)} resources matches.`;
  if (revision !== '') return 'This watch has no resources.';
  return state === 'closed' ? 'Nothing was loaded.' : 'Not loaded yet.';
}

// Each row is a separate grid, so the widths must not depend on its content.
function layout(columns: readonly ShownColumn[], rowHeight: number): CSSProperties {
  const widths = columns.map(({ naming, width }) => (naming && columns.length > 1 ? `min(${width}ch, ${maxKeyWidth})` : `${width}ch`));
  return {
    '--row': `${rowHeight}px`,
    '--columns': columns.map(({ width }, i) => `minmax(${widths[i]}, ${width}fr)`).join(' '),
    '--width': `calc(${widths.join(' + ')})`,
  } as CSSProperties;
}
