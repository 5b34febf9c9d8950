import type { Resource } from '@watchtide/client';

/** Reports whether a resource is shown. */
export type Filter = (resource: Resource) => boolean;

/** Returns a filter for resources with the text in their key or value, ignoring case; undefined for no filter. */
export function parseFilter(text: string): Filter | undefined {
  const wanted = text.trim();
  if (wanted === '') return undefined;
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'iu');
  return ({ key, value }) => pattern.test(key) || contains(value, pattern);
}

// Tests each text separately, which is much faster than testing the JSON of the value.
function contains(value: unknown, pattern: RegExp): boolean {
  if (typeof value === 'string') return pattern.test(value);
  if (typeof value !== 'object' || value === null) return pattern.test(String(value));
  for (const name in value) {
    if (contains((value as Record<string, unknown>)[name], pattern)) return true;
  }
  return false;
}
