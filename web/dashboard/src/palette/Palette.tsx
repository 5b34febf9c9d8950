import { useEffect, useState } from 'react';
import { Part, part } from '../app/Part';

const Search = part(() => import('./Search').then(({ Search }) => Search));

/** Opens the palette with Ctrl-K, or Command-K on a Mac. pages: their names in the URL, and their titles. */
export function Palette({ pages }: { pages: ReadonlyArray<readonly [string, string]> }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      if (document.querySelector('dialog[open]:not(.palette)')) return; // another dialog waits for an answer
      event.preventDefault();
      setOpen((open) => !open);
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  if (!open) return null;
  return (
    <Part>
      <Search pages={pages} onClose={() => setOpen(false)} />
    </Part>
  );
}
