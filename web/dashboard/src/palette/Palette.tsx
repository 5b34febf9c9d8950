import { useEffect, useState } from 'react';
import { createPortal } from 'react-dom';
import { Boundary, lazily } from '../app/Boundary';
import './SearchButton.css';

const Search = lazily(() => import('./Search').then(({ Search }) => Search));

const isMac = /mac|iphone|ipad/i.test(navigator.platform);

/** A button that opens the palette, as Ctrl-K does, or Command-K on a Mac. pages: their names in the URL, and their titles. */
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
  return (
    <>
      <button
        type="button"
        className="search-button"
        aria-haspopup="dialog"
        aria-keyshortcuts={isMac ? 'Meta+K' : 'Control+K'}
        onClick={() => setOpen(true)}
      >
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          <circle cx="6.5" cy="6.5" r="4.5" />
          <path d="M10 10 15 15" />
        </svg>{' '}
        <span className="word">Search</span> <kbd aria-hidden="true">{isMac ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      {open &&
        createPortal(
          <Boundary>
            <Search pages={pages} onClose={() => setOpen(false)} />
          </Boundary>,
          document.body,
        )}
    </>
  );
}
