import { type KeyboardEvent, useCallback, useEffect, useRef, useState } from 'react';
import type { TableRows } from './table';

interface Cursor {
  /** The key of the current row of the keyboard; empty before the first move. */
  readonly key: string;
  /** Opens a row and moves to it. */
  open(key: string, index: number): void;
  onKeyDown(event: KeyboardEvent): void;
}

interface Actions {
  /** The number of rows per page. */
  readonly page: number;
  readonly reveal: (index: number) => void;
  readonly onOpen: (key: string) => void;
  /** Called instead of onOpen if the row is moved to, while another one is open. */
  readonly onMove: (key: string) => void;
  /** The key of the open row. */
  readonly opened: string | undefined;
  /** undefined while nothing is open. */
  readonly onClose: (() => void) | undefined;
}

/** Returns the current row of the keyboard, which is followed when it moves. A row that a link has opened becomes the current one, and comes into view. */
export function useCursor(rows: TableRows, { page, reveal, opened, onOpen, onMove, onClose }: Actions): Cursor {
  const [{ key, index }, setPlace] = useState({ key: '', index: -1 });
  const open = useCallback(
    (key: string, index: number) => {
      setPlace({ key, index });
      onOpen(key);
    },
    [onOpen],
  );

  const followed = useRef<string>(undefined); // the open row, once it was found
  const rendered = rows.length;
  useEffect(() => {
    if (opened === followed.current) return;
    if (opened === undefined || opened === key) return void (followed.current = opened);
    const index = rows.indexOf(opened);
    // Not loaded yet, or filtered out; or it has come since, and the table is not yet tall enough to scroll to it.
    if (index < 0 || index >= rendered) return;
    followed.current = opened;
    setPlace({ key: opened, index });
    reveal(index);
  });

  // The index of the row now; if it was deleted, that of the row in its place.
  const position = () => {
    const now = rows.indexOf(key);
    return now >= 0 ? now : Math.min(index, rows.length - 1);
  };

  const moveTo = (to: number) => {
    const index = Math.max(0, Math.min(to, rows.length - 1));
    if (rows.length === 0) return;
    const row = rows.at(index);
    setPlace({ key: row?.key ?? '', index });
    reveal(index);
    if (opened !== undefined && row && row.key !== opened) onMove(row.key);
  };

  // A row that was not loaded when it became the current one.
  useEffect(() => {
    const row = key === '' && index >= 0 ? rows.at(index) : undefined;
    if (!row) return;
    setPlace({ key: row.key, index });
    if (opened !== undefined) onMove(row.key);
  });

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLButtonElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = position();
    const current = rows.at(at);
    switch (event.key) {
      case 'ArrowDown':
        moveTo(at + 1);
        break;
      case 'ArrowUp':
        moveTo(at - 1);
        break;
      case 'PageDown':
        moveTo(at + page);
        break;
      case 'PageUp':
        moveTo(at - page);
        break;
      case 'Home':
        moveTo(0);
        break;
      case 'End':
        moveTo(Infinity);
        break;
      case 'Enter':
        if (current) open(current.key, at);
        break;
      case 'Escape':
        if (!onClose) return;
        onClose();
        break;
      default:
        return;
    }
    event.preventDefault();
  };
  return { key, open, onKeyDown };
}
