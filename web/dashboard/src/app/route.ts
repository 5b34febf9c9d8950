import { useSyncExternalStore } from 'react';

/**
 * The current place in the dashboard. It is in the fragment of the URL, so that the
 * page is one file under whatever path a proxy serves it:
 * `#/watches/notes?sort=key&filter=a`.
 */
export interface Route {
  readonly page: string; // '' for the first page
  readonly name: string; // of the watch, if the page shows one
  readonly options: URLSearchParams;
}

/** Parses the fragment of a URL. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = split(hash.replace(/^#?\/?/, ''), '?');
  const [page = '', name = ''] = split(path, '/');
  return { page, name: decoded(name), options: new URLSearchParams(query) };
}

/** Returns the link to a page. */
export function href(page: string, name = '', options?: URLSearchParams): string {
  const query = options?.toString() ?? '';
  return `#/${page}${name && `/${encodeURIComponent(name)}`}${query && `?${query}`}`;
}

/** Returns the current route; the component is rendered again when it changes. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return parseRoute(hash);
}

/**
 * Changes options of the current route; undefined removes one. The new URL replaces
 * the old one in the history, unless step is set.
 */
export function setOptions(changes: Readonly<Record<string, string | undefined>>, step = false): void {
  const { page, name, options } = parseRoute(location.hash);
  for (const [option, value] of Object.entries(changes)) {
    if (value === undefined) options.delete(option);
    else options.set(option, value);
  }
  const url = href(page, name, options);
  if (url === location.hash) return;
  if (step) history.pushState(null, '', url);
  else history.replaceState(null, '', url);
  dispatchEvent(new HashChangeEvent('hashchange')); // neither of the two dispatches it
}

function subscribe(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  addEventListener('popstate', changed);
  return () => {
    removeEventListener('hashchange', changed);
    removeEventListener('popstate', changed);
  };
}

function split(text: string, at: string): [string, string] {
  const i = text.indexOf(at);
  return i < 0 ? [text, ''] : [text.slice(0, i), text.slice(i + 1)];
}

// A name that was typed by hand may not be encoded correctly.
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
