import type { View } from '@watchtide/client';
import { useEffect } from 'react';

const mark = 'consistent';

/** Sets a performance mark when the first complete snapshot has been drawn, for measurements. */
export function useConsistent(state: View['state']): void {
  useEffect(() => {
    if (state !== 'in_sync' || performance.getEntriesByName(mark).length > 0) return;
    requestAnimationFrame(() =>
      setTimeout(() => {
        if (performance.getEntriesByName(mark).length === 0) performance.mark(mark);
      }),
    );
  }, [state]);
}
