import { useSyncExternalStore } from 'react';

/** A condition on the width of the page. */
class Width {
  readonly #query: MediaQueryList;

  constructor(query: string) {
    this.#query = matchMedia(query);
  }

  readonly holds = (): boolean => this.#query.matches;

  readonly subscribe = (changed: () => void): (() => void) => {
    this.#query.addEventListener('change', changed);
    return () => this.#query.removeEventListener('change', changed);
  };
}

// The width below which wide tables become cards. The same as in theme.css.
const phone = new Width('(max-width: 700px)');

// The width below which a diagram in columns is too small to read.
const tablet = new Width('(max-width: 960px)');

/** Reports whether the page is as narrow as a phone. */
export const useNarrow = (): boolean => useSyncExternalStore(phone.subscribe, phone.holds);

/** Reports whether the page is as narrow as a tablet, or as a phone. */
export const useCramped = (): boolean => useSyncExternalStore(tablet.subscribe, tablet.holds);
