import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';

/** Returns the state of a button that opens a panel below it. Escape, and a click elsewhere, close the panel. */
export function useMenu() {
  const [open, setOpen] = useState(false);
  const panel = useId();
  const menu = useRef<HTMLDivElement>(null);
  const ref = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const elsewhere = ({ target }: Event) => {
      if (!menu.current?.contains(target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', elsewhere);
    return () => document.removeEventListener('pointerdown', elsewhere);
  }, [open]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !open) return;
    event.stopPropagation();
    setOpen(false);
    ref.current?.focus();
  };
  const props = { 'aria-expanded': open, 'aria-controls': panel, onClick: () => setOpen(!open) };
  return { open, close: () => setOpen(false), menu, panel, button: { ref, props }, props: { onKeyDown } };
}
