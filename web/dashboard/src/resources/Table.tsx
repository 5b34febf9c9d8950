import { useCallback, useEffect, useId, useRef, useState, type CSSProperties, type KeyboardEvent } from 'react';
import { count } from '../text/number';
import { BodyRow, type Phase } from './BodyRow';
import { HeadRow } from './HeadRow';
import type { Sort } from './order';
import type { Row } from './rows';
import type { Look, Sheet } from './sheet';
import type { ShownColumn } from './useColumns';
import { useConsistent } from './useConsistent';
import { reveal, rowHeight, useWindow } from './useWindow';
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

/** The resources of a watch, of which only the rows on the screen are in the document. */
export function Table({ watch, sheet, look, columns, sort, opened, onOpen, onClose }: Props) {
  const grid = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = sheet.rows.shown;
  const { first, last } = useWindow(grid, rows.length);
  const drawn = rows.slice(first, last);
  const [active, setActive] = useState({ key: '', index: 0 });
  useEffect(() => { sheet.visible = new Set(drawn.map(({ key }) => key)); });
  useConsistent(look.state);

  const open = useCallback((key: string, index: number) => {
    setActive({ key, index });
    onOpen(key);
  }, [onOpen]);

  // The row that was moved to, wherever it stands now; if it is gone, the one in its place.
  const position = () => {
    const index = sheet.rows.indexOf(active.key);
    return index >= 0 ? index : Math.min(active.index, rows.length - 1);
  };

  const moveTo = (index: number) => {
    const inside = Math.max(0, Math.min(index, rows.length - 1));
    const row = rows[inside];
    if (!row) return;
    setActive({ key: row.key, index: inside });
    reveal(grid.current!, inside);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLButtonElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.floor(grid.current!.clientHeight / rowHeight) - 2;
    const moves: Record<string, number> = {
      ArrowDown: position() + (active.key ? 1 : 0), ArrowUp: position() - 1, PageDown: position() + page, PageUp: position() - page, Home: 0, End: rows.length - 1,
    };
    if (event.key in moves) moveTo(moves[event.key]!);
    else if (event.key === 'Enter' && rows[position()]) open(rows[position()]!.key, position());
    else if (event.key === 'Escape' && opened !== undefined) onClose();
    else return;
    event.preventDefault();
  };

  const activeDrawn = drawn.findIndex(({ key }) => key === active.key);
  return (
    <div
      ref={grid} role="grid" className="resource-grid card" tabIndex={0} aria-label={`Resources of ${watch}`}
      aria-rowcount={look.matching + 1} aria-colcount={columns.length} aria-busy={look.arranging}
      aria-activedescendant={activeDrawn >= 0 ? `${id}${first + activeDrawn}` : undefined} onKeyDown={onKeyDown}
      data-testid="resources" data-state={look.state} data-count={look.total} data-revision={look.revision} style={layout(columns)}
    >
      <HeadRow columns={columns} sort={sort} />
      <div role="rowgroup" className="body" style={{ height: rows.length * rowHeight }}>
        {drawn.map((row, i) => (
          <BodyRow
            key={row.key} id={`${id}${first + i}`} rowKey={row.key} index={first + i}
            resource={row.resource} columns={columns} phase={phase(row)} active={row.key === active.key} opened={row.key === opened} onOpen={open}
          />
        ))}
      </div>
      {rows.length === 0 && <p className="none">{nothing(look)}</p>}
    </div>
  );
}

function phase({ born, gone }: Row): Phase {
  if (gone > 0) return 'gone';
  return born > 0 && performance.now() - born < newMs ? 'new' : undefined;
}

function nothing({ state, total, arranging }: Look): string {
  if (arranging) return 'One moment…';
  if (total > 0) return `None of the ${count(total)} resources has this text.`;
  return state === 'connecting' || state === 'priming' ? 'Not loaded yet.' : 'This watch has no resources.';
}

// Each row is a grid of its own: the widths must not depend on what is in it.
function layout(columns: readonly ShownColumn[]): CSSProperties {
  return {
    '--columns': columns.map(({ width }) => `minmax(${width}ch, ${width}fr)`).join(' '),
    '--width': `${columns.reduce((sum, { width }) => sum + width, 0)}ch`,
  } as CSSProperties;
}
