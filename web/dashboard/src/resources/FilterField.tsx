import { useEffect, useRef, useState } from 'react';
import { setOptions } from '../app/route';
import { count } from '../text/number';
import type { TableStatus } from './model';

const debounceMs = 150; // browsers limit how often the URL may change

/** A text filter for keys and values, and the number of matches. */
export function FilterField({ filter, status: { arranging, matching, total } }: { filter: string; status: TableStatus }) {
  const [typed, setTyped] = useState(filter);
  const written = useRef(filter);
  useEffect(() => {
    // the URL was changed elsewhere
    if (filter !== written.current) setTyped(filter);
    written.current = filter;
  }, [filter]);
  useEffect(() => {
    const timer = setTimeout(() => {
      written.current = typed;
      setOptions({ filter: typed || undefined });
    }, debounceMs);
    return () => clearTimeout(timer);
  }, [typed]);
  const found = filter && `${count(matching)} of ${count(total)}`;
  return (
    <div className="row-filter">
      <input
        type="search"
        autoComplete="off"
        spellCheck={false}
        aria-label="Filter"
        placeholder="Filter by key or value"
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
      />
      <span className="soft">{filter && arranging ? 'Searching…' : found}</span>
      <span role="status" className="visually-hidden">
        {useAnnounced(found, filter)}
      </span>
    </div>
  );
}

const announceMs = 500;

// The number may change with each frame. A screen reader reads it only after the
// filter changed.
function useAnnounced(text: string, cause: string): string {
  const [announced, setAnnounced] = useState('');
  const newest = useRef(text);
  useEffect(() => {
    newest.current = text;
  });
  useEffect(() => {
    const timer = setTimeout(() => setAnnounced(newest.current), announceMs);
    return () => clearTimeout(timer);
  }, [cause]);
  return announced;
}
