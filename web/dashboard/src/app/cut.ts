import { useLayoutEffect, useRef, useState } from 'react';

/** A text of a few lines at most, which may be cut. open: the user wants all of it. */
export function useCut() {
  const ref = useRef<HTMLParagraphElement>(null);
  const [cut, setCut] = useState(false);
  const [open, setOpen] = useState(false);
  useLayoutEffect(() => {
    const text = ref.current!;
    const measure = () => setCut(text.scrollHeight > text.clientHeight + 1);
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(text);
    return () => resized.disconnect();
  });
  return { ref, cut, open, toggle: () => setOpen((open) => !open) };
}
