import { useEffect, useState, type RefObject } from 'react';

/** Whether an element is in view, or nearly: what is not need not be drawn each second. */
export function useSeen(of: RefObject<Element | null>): boolean {
  const [seen, setSeen] = useState(true);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setSeen(entries.at(-1)!.isIntersecting), { rootMargin: '200px' });
    observer.observe(of.current!);
    return () => observer.disconnect();
  }, [of]);
  return seen;
}
