import type { DeleteEvent, UpsertEvent } from './protocol.js';

/** One member of a watch, as it last changed. */
export interface Resource<V = unknown> {
  /** Unique in the watch. In base64 where `key_encoding` says so. */
  readonly key: string;
  readonly key_encoding?: 'base64';
  /** The place in the upstream's order at which it last changed: a number too large for JavaScript's. */
  readonly revision: string;
  readonly value: V;
  /** `value` is a string that holds bytes in base64. */
  readonly encoding?: 'base64';
}

/** The resource that an upsert carries. */
export function resourceOf<V>({ key, key_encoding, revision, value, encoding }: UpsertEvent): Resource<V> {
  const resource = { key, revision, value: value as V };
  if (!key_encoding && !encoding) return resource; // nearly always, and there may be very many
  return { ...resource, ...(key_encoding && { key_encoding }), ...(encoding && { encoding }) };
}

/**
 * The key under which a resource stands in a map. It is the key itself but for
 * those that are not UTF-8: they get a lone surrogate in front of their base64,
 * which no UTF-8 key can hold, so that the two never meet.
 */
export function mapKey({ key, key_encoding }: Pick<UpsertEvent | DeleteEvent, 'key' | 'key_encoding'>): string {
  return key_encoding ? `\udfff${key}` : key;
}
