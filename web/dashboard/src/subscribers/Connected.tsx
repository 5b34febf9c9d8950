import type { Subscribers } from '@watchtide/protocol';
import { type CSSProperties, useEffect, useRef, useState } from 'react';
import { Cards, Table } from '../app/DataTable';
import { useNarrow } from '../app/narrow';
import { setOptions } from '../app/route';
import type { Selection } from '../gateway/subscribers';
import { useVisibleRows, type VisibleRows } from '../resources/useVisibleRows';
import { count } from '../text/number';
import { connected } from './columns';
import type { Pages } from './pages';
import { type Shown, usePages } from './usePages';

interface Props {
  readonly selection: Selection;
  readonly first: Subscribers;
  readonly limit: number;
}

// In px. A row has two lines, a card what fits on a phone.
const rowHeights = { comfortable: 56, compact: 48 };
const cardHeights = { comfortable: 248, compact: 248 };

// A page cannot hold any number of rows. A search finds the others.
const most = 50_000;

/** Shows the connected subscribers, with the highest lag first. Only those on the screen are in the document. */
export function Connected({ selection, first, limit }: Props) {
  const [shown, setShown] = useState<Shown>({ row: 0, atTop: true });
  const pages = usePages({ selection, first, limit }, shown);
  const narrow = useNarrow();
  const rows = Math.min(most, pages.complete ? pages.loaded : Math.max(first.count, pages.loaded));
  return (
    <section aria-labelledby="present">
      <div className="bar">
        <h3 id="present">Connected</h3>
        {first.count > 1 && (
          <span className="soft">
            {rows === most ? `the first ${count(most)} of ` : ''}
            {count(first.count)}
          </span>
        )}
        <label>
          sorted by{' '}
          <select value={selection.sort ?? ''} onChange={({ target }) => setOptions({ sort: target.value || undefined })}>
            <option value="">lag, the highest first</option>
            <option value="since">time, the oldest first</option>
          </select>
        </label>
      </div>
      {rows === 0 ? <p className="soft">None.</p> : <Scroller key={String(narrow)} {...{ pages, rows, narrow }} onShow={setShown} />}
    </section>
  );
}

interface ScrollerProps {
  readonly pages: Pages;
  readonly rows: number;
  readonly narrow: boolean;
  readonly onShow: (shown: Shown) => void;
}

function Scroller({ pages, rows, narrow, onShow }: ScrollerProps) {
  const scroller = useRef<HTMLElement>(null);
  const seen = useVisibleRows(scroller, rows, narrow ? cardHeights : rowHeights);
  const missing = indexes(seen).find((i) => !pages.at(i));
  const row = missing ?? Math.min(rows - 1, seen.top + Math.floor(seen.whole / 2));
  const atTop = seen.first === 0;
  useEffect(() => onShow({ row, atTop }), [row, atTop, onShow]);
  const List = narrow ? Cards : Table;
  return (
    <section
      ref={scroller}
      className={narrow ? 'connected' : 'card connected'}
      tabIndex={0} // it scrolls, also with the keyboard
      aria-label="Connected subscribers"
      style={{ '--row': `${seen.rowHeight}px`, '--rows': rows } as CSSProperties}
    >
      <List
        labelledBy="present"
        className={narrow ? '' : 'people'}
        columns={connected}
        rows={indexes(seen).map((i) => pages.at(i))}
        keyOf={({ id }) => id}
        slice={{ first: seen.first, of: rows, px: { before: seen.y(seen.first), after: Math.max(0, seen.height - seen.y(seen.last)) } }}
      />
    </section>
  );
}

const indexes = ({ first, last }: VisibleRows) => Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
