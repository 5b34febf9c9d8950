import { at } from '../gateway/base';

/** What is asked for on the stream page. */
export interface Ask {
  readonly watches: readonly string[];
  /** Of the keys; empty for all. */
  readonly prefix: string;
  readonly format: 'sse' | 'ndjson';
  /** The position to go on from; empty for a snapshot. */
  readonly position: string;
}

/** What the URL of the page asks for: the watch that it names, and what its options say. */
export function askOf(watch: string, options: URLSearchParams): Ask {
  const also = (options.get('also') ?? '').split(',').filter((name) => name !== '' && name !== watch);
  return {
    watches: [watch, ...also],
    prefix: options.get('prefix') ?? '',
    format: options.get('format') === 'ndjson' ? 'ndjson' : 'sse',
    position: options.get('position') ?? '',
  };
}

/** The options of the page's URL that ask for this. */
export function optionsOf({ watches, prefix, format, position }: Ask): Record<string, string | undefined> {
  return {
    also: watches.slice(1).join(',') || undefined,
    prefix: prefix || undefined,
    format: format === 'sse' ? undefined : format,
    position: position || undefined,
  };
}

/** The URL of the stream. */
export function urlOf({ watches, prefix }: Ask): URL {
  const [first = ''] = watches;
  const url = at(watches.length === 1 ? `v1/watches/${encodeURIComponent(first)}/events` : 'v1/events');
  if (watches.length > 1) for (const name of watches) url.searchParams.append('watch', name);
  if (prefix) for (const name of watches) url.searchParams.set(watches.length === 1 ? 'prefix' : `prefix.${name}`, prefix);
  return url;
}

/** The headers of the request, those left out that say what is so anyway. */
export function headersOf({ format, position }: Ask): Record<string, string> {
  return {
    ...(format === 'ndjson' && { Accept: 'application/x-ndjson' }),
    ...(position && { 'Last-Event-ID': position }),
  };
}
