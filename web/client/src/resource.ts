import type { DeleteEvent, UpsertEvent } from './protocol.js';

/** One member of a watch, as of its last change. */
export interface Resource<V = unknown> {
  /** Unique in the watch. In base64 if `key_encoding` says so. */
  readonly key: string;
  readonly key_encoding?: 'base64';
  /** The place of its last change in the upstream's order, as text: it may be too large for a number. */
  readonly revision: string;
  readonly value: V;
  /** `value` is a string that holds bytes in base64. */
  readonly encoding?: 'base64';
}

/** Returns the resource of an upsert. */
export function resourceOf<V>({ key, key_encoding, revision, value, encoding }: UpsertEvent): Resource<V> {
  const resource = { key, revision, value: value as V };
  if (!key_encoding && !encoding) return resource; // the usual case, kept fast
  return { ...resource, ...(key_encoding && { key_encoding }), ...(encoding && { encoding }) };
}

/**
 * Returns the key of a resource in a map. It is the key itself, except for keys that
 * are not UTF-8: their base64 gets a lone surrogate as a prefix, which no UTF-8 key
 * can contain, so that the two never collide.
 */
export function mapKey({ key, key_encoding }: Pick<UpsertEvent | DeleteEvent, 'key' | 'key_encoding'>): string {
  return key_encoding ? `\udfff${key}` : key;
}
