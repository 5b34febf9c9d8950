import { type RefObject, useEffect, useState } from 'react';

/** Reports whether an element is in view, or nearly. Other elements need not be drawn each second. */
export function useVisible(of: RefObject<Element | null>): boolean {
  const [visible, setVisible] = useState(true);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setVisible(entries.at(-1)!.isIntersecting), { rootMargin: '200px' });
    observer.observe(of.current!);
    return () => observer.disconnect();
  }, [of]);
  return visible;
}
