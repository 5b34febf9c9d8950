import { useEffect, useRef, useState } from 'react';
import { useRoute } from './route';

// The notice appears once the recovery has lasted for a moment, and then goes away.
const stableMs = 1500;
const shownMs = 6000;

/** Announces politely that what was stale no longer is; not on another page, and not after a first load. */
export function RecoveryNotice({ troubled, starting }: { troubled: boolean; starting: boolean }) {
  const { page, name } = useRoute();
  const place = `${page}/${name}`;
  const troubledAt = useRef<string>(undefined); // where there was trouble, until it is over
  const [recovered, setRecovered] = useState(false);
  useEffect(() => {
    if (troubled && !starting) troubledAt.current ??= place;
    const over = !troubled && troubledAt.current === place;
    if (!troubled) troubledAt.current = undefined;
    if (!over) return setRecovered(false);
    const timers = [setTimeout(setRecovered, stableMs, true), setTimeout(setRecovered, stableMs + shownMs, false)];
    return () => timers.forEach(clearTimeout);
  }, [troubled, starting, place]);
  return <div role="status" className={recovered ? 'banner clear' : ''}>{recovered && 'What you see is up to date again.'}</div>;
}
