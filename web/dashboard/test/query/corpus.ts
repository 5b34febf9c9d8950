import type { Resource } from '@watchtide/client';
import fc from 'fast-check';
import { celOf } from '../../src/query/cel';
import { filterOf } from '../../src/query/holds';
import { isMistake, parseQuery } from '../../src/query/query';
import { fields, keys, values, written } from './random';

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
  const queries = fc.sample(fields, options).map((query) => {
    const text = written(query);
    const parsed = parseQuery(text);
    if (isMistake(parsed)) throw new Error(`${text}: ${parsed.reason}`);
    const filter = filterOf(parsed)!;
    const holds = resources.flatMap((resource, i) => (filter(resource) ? [i] : []));
    const cel = parsed.map((term) => (term.kind === 'field' ? celOf(term) : '')).join(' && ');
    return { text, cel, holds };
  });
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
