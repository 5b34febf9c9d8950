import { useSyncExternalStore } from 'react';

/**
 * Where in the dashboard we are. It is kept behind the # of the URL, so that the
 * page is one file under whatever path a proxy serves it:
 * `#/watches/notes?sort=key&filter=a`.
 */
export interface Route {
  readonly page: string; // '' for the overview
  readonly name: string; // of the watch, where the page is about one
  readonly options: URLSearchParams;
}

/** Reads the part of a URL from the # on. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = split(hash.replace(/^#?\/?/, ''), '?');
  const [page = '', name = ''] = split(path, '/');
  return { page, name: decoded(name), options: new URLSearchParams(query) };
}

/** The link to a page. */
export function href(page: string, name = '', options?: URLSearchParams): string {
  const query = options?.toString() ?? '';
  return `#/${page}${name && `/${encodeURIComponent(name)}`}${query && `?${query}`}`;
}

/** The route that is shown; the component is rendered again when it changes. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return parseRoute(hash);
}

/**
 * Changes options of the route that is shown, undefined to take one away. The
 * new URL takes the place of the old one, unless it is a step to go back from.
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
  dispatchEvent(new HashChangeEvent('hashchange')); // neither of the two says so
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

// A name that was typed by hand may not be what encodeURIComponent makes.
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
