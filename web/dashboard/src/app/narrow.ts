import { useSyncExternalStore } from 'react';

// The width below which wide tables become cards. The same as in theme.css.
const query = matchMedia('(max-width: 700px)');

/** Reports whether the page is as narrow as a phone. */
export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}

function subscribe(changed: () => void): () => void {
  query.addEventListener('change', changed);
  return () => query.removeEventListener('change', changed);
}
