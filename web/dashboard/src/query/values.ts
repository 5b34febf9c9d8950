import type { Resource } from '@watchtide/client';
import { column } from '../resources/column';
import type { FieldTerm, Query } from './query';
import type { SuggestedValue } from './suggest';

const longest = 40; // of a suggested value, in characters

/** Returns the short values of a field in a sample, the most frequent first. */
export function valuesOf(field: string, sample: readonly Resource[]): SuggestedValue[] {
  const { get } = column(field);
  const counts = new Map<string, number>();
  for (const resource of sample) {
    const value = get(resource);
    if (value === undefined || (typeof value === 'object' && value !== null)) continue;
    const text = String(value);
    if (text.length <= longest) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, count]) => ({ text, count })).sort((a, b) => b.count - a.count || (a.text < b.text ? -1 : 1));
}

/** Returns the first field of a query that no resource of a sample has; undefined if the sample is empty. It is taken only if it is needed. */
export function unknownField(query: Query, take: () => readonly Resource[]): string | undefined {
  const terms = query.filter((term): term is FieldTerm => term.kind === 'field');
  if (terms.length === 0) return undefined;
  const sample = take();
  if (sample.length === 0) return undefined;
  return terms.find(({ field }) => !sample.some((resource) => column(field).get(resource) !== undefined))?.field;
}
