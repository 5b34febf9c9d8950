import type { Resource } from '@watchtide/client';
import fc from 'fast-check';
import { split } from '../../src/query/cel';
import { filterOf } from '../../src/query/holds';
import { isMistake, parseQuery, type Query } from '../../src/query/query';
import { column } from '../../src/resources/column';
import { fields, keys, texts, values, written } from './random';

// Random, and the same each time.
const options = { seed: 20261125, numRuns: 400 };

/** Resources, and of which of them each query holds. The gateway must find the same. */
export interface Corpus {
  readonly resources: ReadonlyArray<{ readonly key: string; readonly revision: string; readonly value: string; readonly bytes?: true }>;
  readonly queries: ReadonlyArray<{ readonly text: string; readonly cel: string; readonly holds: readonly number[] }>;
}

/** Returns the corpus, in which values are text and keys that are not UTF-8 are in base64. */
export function corpus(): Corpus {
  const resources = resourcesOf();
  const evaluated = (query: Query, searched: readonly (Resource | undefined)[]) => {
    const text = written(query);
    const parsed = parseQuery(text);
    if (isMistake(parsed)) throw new Error(`${text}: ${parsed.reason}`);
    const filter = filterOf(parsed)!;
    const holds = searched.flatMap((resource, i) => (resource && filter(resource) ? [i] : []));
    return { text, cel: split(parsed, columns).cel, holds };
  };
  const queries = [
    ...fc.sample(fields, options).map((query) => evaluated(query, resources)),
    ...fc.sample(texts, { ...options, numRuns: 100 }).map((query) => {
      const negated = query.some(({ not }) => not);
      return evaluated(
        query,
        resources.map((resource) => (negated && resource.encoding ? undefined : searchedOf(resource))),
      );
    }),
  ].filter(({ cel }) => cel !== '');
  return {
    resources: resources.map(({ key, revision, value, encoding }) => ({
      key,
      revision,
      value: json(value),
      ...(encoding && { bytes: true as const }),
    })),
    queries,
  };
}

// In which the gateway searches for a text.
const columns = ['state', 'x.state', 'a-b', 'value'];

// What the page finds in the resource that is left is what the gateway finds in the key and in the columns. A value that is not JSON has
// none, and nothing can be said of what it lacks.
function searchedOf({ value, encoding, ...resource }: Resource): Resource {
  const found = encoding ? [] : columns.map((id) => column(id).get({ ...resource, value })).filter((text) => typeof text === 'string');
  return { ...resource, value: found };
}

function resourcesOf(): Resource[] {
  const found = fc.sample(fc.record({ key: keys, value: values }), { ...options, numRuns: 150 });
  const resources: Resource[] = found.map(({ key, value }, i) => ({ key, value, revision: String(i % 12) }));
  return [
    ...resources,
    { key: 'bytes', value: 'AA==', encoding: 'base64', revision: '7' },
    { key: 'late', value: {}, revision: '18446744073709551615' },
  ];
}

function json(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(json).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, inner]) => `${JSON.stringify(name)}:${json(inner)}`)
    .join(',')}}`;
}
