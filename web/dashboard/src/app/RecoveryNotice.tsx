import { useEffect, useRef, useState } from 'react';
import { useRoute } from './route';

// Well again is only what stays well for a moment, and it is no news for long.
const sureMs = 1500;
const shownMs = 6000;

/** Says politely that what was stale no longer is. Who went to another page left the trouble there, and is told nothing; nor who only waited for a beginning. */
export function AllClear({ troubled, begins }: { troubled: boolean; begins: boolean }) {
  const { page, name } = useRoute();
  const place = `${page}/${name}`;
  const troubledAt = useRef<string>(undefined); // the place of a trouble that is not over
  const [clear, setClear] = useState(false);
  useEffect(() => {
    if (troubled && !begins) troubledAt.current ??= place;
    const news = !troubled && troubledAt.current === place;
    if (!troubled) troubledAt.current = undefined;
    if (!news) return setClear(false);
    const timers = [setTimeout(setClear, sureMs, true), setTimeout(setClear, sureMs + shownMs, false)];
    return () => timers.forEach(clearTimeout);
  }, [troubled, begins, place]);
  return <div role="status" className={clear ? 'banner clear' : ''}>{clear && 'What you see is up to date again.'}</div>;
}
