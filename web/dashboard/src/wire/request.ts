import { at } from '../gateway/base';

/** A request of the stream page. */
export interface StreamRequest {
  readonly watches: readonly string[];
  /** The prefix of the keys; empty for all. */
  readonly prefix: string;
  readonly format: 'sse' | 'ndjson';
  /** The position to resume from; empty for a snapshot. */
  readonly position: string;
}

/** Parses the request in the URL of the page: its watch and its options. */
export function parseRequest(watch: string, options: URLSearchParams): StreamRequest {
  const also = (options.get('also') ?? '').split(',').filter((name) => name !== '' && name !== watch);
  return {
    watches: [watch, ...also],
    prefix: options.get('prefix') ?? '',
    format: options.get('format') === 'ndjson' ? 'ndjson' : 'sse',
    position: options.get('position') ?? '',
  };
}

/** Returns the options of the page's URL for a request. */
export function optionsOf({ watches, prefix, format, position }: StreamRequest): Record<string, string | undefined> {
  return {
    also: watches.slice(1).join(',') || undefined,
    prefix: prefix || undefined,
    format: format === 'sse' ? undefined : format,
    position: position || undefined,
  };
}

/** Returns the URL of the stream. */
export function urlOf({ watches, prefix }: StreamRequest): URL {
  const [first = ''] = watches;
  const url = at(watches.length === 1 ? `v1/watches/${encodeURIComponent(first)}/events` : 'v1/events');
  if (watches.length > 1) for (const name of watches) url.searchParams.append('watch', name);
  if (prefix) for (const name of watches) url.searchParams.set(watches.length === 1 ? 'prefix' : `prefix.${name}`, prefix);
  return url;
}

/** Returns the headers of the request, without those that are the default. */
export function headersOf({ format, position }: StreamRequest): Record<string, string> {
  return {
    ...(format === 'ndjson' && { Accept: 'application/x-ndjson' }),
    ...(position && { 'Last-Event-ID': position }),
  };
}
