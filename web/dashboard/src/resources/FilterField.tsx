import { useEffect, useRef, useState } from 'react';
import { setOptions } from '../app/route';
import { count } from '../text/number';
import type { Look } from './model';

const quietMs = 150; // a browser refuses to change the URL with every key of a fast typist

/** The text that keys or values must have, and how many have it. */
export function FilterField({ filter, look: { arranging, matching, total } }: { filter: string; look: Look }) {
  const [typed, setTyped] = useState(filter);
  const written = useRef(filter);
  useEffect(() => { // somebody else changed the URL
    if (filter !== written.current) setTyped(filter);
    written.current = filter;
  }, [filter]);
  useEffect(() => {
    const timer = setTimeout(() => {
      written.current = typed;
      setOptions({ filter: typed || undefined });
    }, quietMs);
    return () => clearTimeout(timer);
  }, [typed]);
  const found = filter && `${count(matching)} of ${count(total)}`;
  return (
    <div className="row-filter">
      <input
        type="search" autoComplete="off" spellCheck={false} aria-label="Filter" placeholder="Filter by key or value"
        value={typed} onChange={({ target }) => setTyped(target.value)}
      />
      <span className="soft">{filter && arranging ? 'Searching…' : found}</span>
      <span role="status" className="visually-hidden">{useSaid(found, filter)}</span>
    </div>
  );
}

const sayMs = 500;

// The number may change with each frame. It is read out only after the filter did.
function useSaid(text: string, cause: string): string {
  const [said, setSaid] = useState('');
  const newest = useRef(text);
  useEffect(() => { newest.current = text; });
  useEffect(() => {
    const timer = setTimeout(() => setSaid(newest.current), sayMs);
    return () => clearTimeout(timer);
  }, [cause]);
  return said;
}
