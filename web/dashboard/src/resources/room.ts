import { useSyncExternalStore } from 'react';
import type { Room } from './fields';

const narrow = matchMedia('(max-width: 700px)');
const wide = matchMedia('(min-width: 1600px)');
const widest = matchMedia('(min-width: 2200px)');
const queries = [narrow, wide, widest];

const rooms: Readonly<Record<string, Room>> = {
  narrow: { columns: 6, narrow: true },
  usual: { columns: 6, narrow: false },
  wide: { columns: 9, narrow: false },
  widest: { columns: 12, narrow: false },
};

/** Returns the room that the page has for the columns of a table. */
export function useRoom(): Room {
  return useSyncExternalStore(subscribe, room);
}

const room = () => rooms[narrow.matches ? 'narrow' : widest.matches ? 'widest' : wide.matches ? 'wide' : 'usual']!;

function subscribe(changed: () => void): () => void {
  for (const query of queries) query.addEventListener('change', changed);
  return () => {
    for (const query of queries) query.removeEventListener('change', changed);
  };
}
