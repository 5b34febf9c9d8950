import type { Resource } from '@watchtide/client';

/** Says whether a resource is to be shown. */
export type Filter = (resource: Resource) => boolean;

/** Lets pass what has the text in its key or somewhere in its value, in capitals or not; undefined lets all pass. */
export function filtering(text: string): Filter | undefined {
  const wanted = text.trim();
  if (wanted === '') return undefined;
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu');
  return ({ key, value }) => pattern.test(key) || within(value, pattern);
}

// Asks each text by itself, which takes a fraction of the time of the JSON of it all.
function within(value: unknown, pattern: RegExp): boolean {
  if (typeof value === 'string') return pattern.test(value);
  if (typeof value !== 'object' || value === null) return pattern.test(String(value));
  for (const name in value) {
    if (within((value as Record<string, unknown>)[name], pattern)) return true;
  }
  return false;
}
