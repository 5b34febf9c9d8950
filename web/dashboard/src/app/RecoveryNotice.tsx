import { useEffect, useRef, useState } from 'react';
import { useRoute } from './route';

// The notice appears once the recovery has lasted for a moment, and then disappears.
const stableMs = 1500;
const shownMs = 6000;

/** Politely announces that data is no longer stale. Not shown on another page or after a first load. */
export function RecoveryNotice({ troubled, starting }: { troubled: boolean; starting: boolean }) {
  const { page, name } = useRoute();
  const place = `${page}/${name}`;
  const troubledAt = useRef<string>(undefined); // the page with the trouble, until it is over
  const [recovered, setRecovered] = useState(false);
  useEffect(() => {
    if (troubled && !starting) troubledAt.current ??= place;
    const over = !troubled && troubledAt.current === place;
    if (!troubled) troubledAt.current = undefined;
    if (!over) return setRecovered(false);
    const timers = [setTimeout(setRecovered, stableMs, true), setTimeout(setRecovered, stableMs + shownMs, false)];
    return () => timers.forEach(clearTimeout);
  }, [troubled, starting, place]);
  return (
    <div role="status" className={recovered ? 'banner clear' : ''}>
      {recovered && 'What you see is up to date again.'}
    </div>
  );
}
