import { useEffect, useState } from 'react';
import { setOptions } from '../app/route';
import type { Selection } from '../gateway/subscribers';
import { propertyName } from './selection';

const pauseMs = 300;

/** Searches the subscribers, and shows which group is selected. */
export function SelectionBar({ selection }: { selection: Selection }) {
  return (
    <div className="bar">
      <Search text={selection.search ?? ''} />
      {(['application', 'network', 'transport', 'principal', 'client_id'] as const).map(
        (property) =>
          selection[property] && (
            <button
              key={property}
              type="button"
              aria-pressed="true"
              title="Show all again"
              onClick={() => setOptions({ [property]: undefined })}
            >
              {propertyName(property)}: {selection[property]} <span aria-hidden="true">✕</span>
              <span className="visually-hidden">: show all again</span>
            </button>
          ),
      )}
    </div>
  );
}

// The gateway is asked once the user pauses, and not for every letter.
function Search({ text }: { text: string }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = setTimeout(() => setOptions({ search: typed || undefined }), pauseMs);
    return () => clearTimeout(timer);
  }, [typed, text]);
  return (
    <input
      type="search"
      className="find"
      maxLength={128}
      aria-label="Search subscribers"
      placeholder="Address, user agent, principal, watch, id"
      value={typed}
      onChange={({ target }) => setTyped(target.value)}
    />
  );
}
