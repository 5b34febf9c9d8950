import { useEffect, useId, useRef, type CSSProperties } from 'react';
import { count } from '../text/number';
import { BodyRow, type Phase } from './BodyRow';
import { HeadRow } from './HeadRow';
import type { Sort } from './order';
import type { Row } from './rows';
import type { Look, Sheet } from './model';
import { useAnchor } from './useAnchor';
import type { ShownColumn } from './useColumns';
import { useConsistent } from './useConsistent';
import { useCursor } from './useCursor';
import { useWindow } from './useWindow';
import './Table.css';

interface Props {
  readonly watch: string;
  readonly sheet: Sheet;
  readonly look: Look;
  readonly columns: readonly ShownColumn[];
  readonly sort: Sort;
  /** The key of the resource whose detail is open. */
  readonly opened: string | undefined;
  readonly onOpen: (key: string) => void;
  readonly onClose: () => void;
}

// So long a resource that was created is marked.
const newMs = 2000;

// The keys stay in sight: on a phone they must leave room for the rest.
const mostOfKey = '45vw';

/** The resources of a watch, of which only the rows on the screen are in the document. */
export function Table({ watch, sheet, look, columns, sort, opened, onOpen, onClose }: Props) {
  const grid = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = sheet.rows.shown;
  const seen = useWindow(grid, rows.length);
  const { first, last } = seen;
  const drawn = rows.slice(first, last);
  useEffect(() => { sheet.visible = new Set(drawn.map(({ key }) => key)); });
  useAnchor(sheet, look, seen, sort.column === 'key');
  useConsistent(look.state);
  useSorted(seen.toTop, sort);
  const cursor = useCursor(sheet.rows, {
    page: Math.max(1, seen.whole - 1), reveal: seen.reveal, onOpen, onClose: opened === undefined ? undefined : onClose,
  });
  const active = drawn.findIndex(({ key }) => key === cursor.key);
  return (
    <div
      ref={grid} role="grid" className="resource-grid card" tabIndex={0} aria-label={`Resources of ${watch}`}
      aria-rowcount={look.matching + 1} aria-colcount={columns.length} aria-busy={look.arranging}
      aria-activedescendant={active >= 0 ? `${id}${first + active}` : undefined} onKeyDown={cursor.onKeyDown}
      data-testid="resources" data-state={look.state} data-count={look.total} data-revision={look.revision} style={layout(columns)}
    >
      <HeadRow columns={columns} sort={sort} />
      <div role="rowgroup" className="body" style={{ height: seen.height }}>
        {drawn.map((row, i) => (
          <BodyRow
            key={row.key} id={`${id}${first + i}`} rowKey={row.key} index={first + i} y={seen.y(first + i)}
            resource={row.resource} columns={columns} phase={phase(row)} active={i === active} opened={row.key === opened} onOpen={cursor.open}
          />
        ))}
      </div>
      {rows.length === 0 && <p className="none">{nothing(look)}</p>}
    </div>
  );
}

// Another order is read from its beginning.
function useSorted(toTop: () => void, { column, descending }: Sort): void {
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) toTop();
    first.current = false;
  }, [toTop, column, descending]);
}

function phase({ born, gone }: Row): Phase {
  if (gone > 0) return 'gone';
  return born > 0 && performance.now() - born < newMs ? 'new' : undefined;
}

function nothing({ state, revision, total, arranging }: Look): string {
  if (arranging) return 'Loading…';
  if (total > 0) return `None of ${count(total)} resources contains this text.`;
  if (revision !== '') return 'This watch has no resources.';
  return state === 'closed' ? 'Nothing was loaded.' : 'Not loaded yet.';
}

// Each row is a grid of its own: the widths must not depend on what is in it.
function layout(columns: readonly ShownColumn[]): CSSProperties {
  const widths = columns.map(({ id, width }) => (id === 'key' && columns.length > 1 ? `min(${width}ch, ${mostOfKey})` : `${width}ch`));
  return {
    '--columns': columns.map(({ width }, i) => `minmax(${widths[i]}, ${width}fr)`).join(' '),
    '--width': `calc(${widths.join(' + ')})`,
  } as CSSProperties;
}
