import { readFileSync, writeFileSync } from 'node:fs';
import type { Resource } from '@watchtide/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { split } from '../../src/query/cel';
import { filterOf, orderOfTexts } from '../../src/query/holds';
import { isMistake, type Mistake, parseQuery, type Query } from '../../src/query/query';
import { corpus } from './corpus';
import { queries, written } from './random';

const parsed = (text: string): Query => {
  const query = parseQuery(text);
  if (isMistake(query)) throw new Error(query.reason);
  return query;
};
const mistake = (text: string) => parseQuery(text) as Mistake;
const resource = (key: string, value: unknown, more: Partial<Resource> = {}): Resource => ({ key, value, revision: '5', ...more });
const holds = (text: string, value: unknown, key = 'k') => filterOf(parsed(text))!(resource(key, value));

describe('a query', () => {
  it('is what was written', () => {
    fc.assert(fc.property(queries, (query) => void expect(parsed(written(query))).toEqual(query)));
  });

  it('is a query or a mistake, whatever the text', () => {
    const piece = fc.constantFrom('!', ':', '>', '<=', '=', '"', '\\', ' ', ',', '*', 'a', '.', '2', '\ud800', '🦀');
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        const query = parseQuery(text);
        if (!isMistake(query)) return void filterOf(query)?.(resource('k', { a: 'x' }));
        expect(query.from).toBeLessThanOrEqual(query.to);
        expect(query.to).toBeLessThanOrEqual(text.length + 1);
        expect(query.reason).not.toBe('');
      }),
    );
  });

  it('names the place of a mistake, and what would be right', () => {
    expect(mistake('a state:')).toEqual({ from: 8, to: 9, reason: 'a value is missing after “:”: for an empty text, write state:""' });
    expect(mistake('x ! y').reason).toContain('“!”');
    expect(mistake('"abc').reason).toContain('not closed');
    expect(mistake('"a"b')).toMatchObject({ from: 3, to: 4 });
    expect(mistake(':x').reason).toContain('name of a field is missing');
    expect(mistake('cpu>1,2').reason).toContain('takes one value');
    expect(mistake('cpu>1*').reason).toContain('“*”');
    expect(mistake('a:b*c')).toMatchObject({ from: 3, to: 4 });
    expect(mistake('revision>x').reason).toContain('whole number');
    expect(mistake('!a!=b').reason).toContain('twice');
  });
});

describe('a condition', () => {
  it('compares texts, numbers and words', () => {
    expect(holds('state:critical', { state: 'critical' })).toBe(true);
    expect(holds('state:critical', { state: 'Critical' })).toBe(false);
    expect(holds('state:warning,critical', { state: 'critical' })).toBe(true);
    expect(holds('cpu>2', { cpu: 2.5 })).toBe(true);
    expect(holds('cpu>2', { cpu: '9' })).toBe(false);
    expect(holds('cpu:2', { cpu: '2' })).toBe(true);
    expect(holds('ready:true', { ready: true })).toBe(true);
    expect(holds('ready:"true"', { ready: true })).toBe(false);
    expect(holds('since>=2026-11-25', { since: '2026-11-25T10:00:00Z' })).toBe(true);
    expect(holds('id:9007199254740993', { id: 9007199254740993n })).toBe(true);
    expect(holds('id:9007199254740993', { id: 9007199254740992 })).toBe(false);
  });

  it('finds the beginning, the end and a part of a text, and that a field exists', () => {
    expect(holds('name:ap*', { name: 'api' })).toBe(true);
    expect(holds('name:*pi', { name: 'api' })).toBe(true);
    expect(holds('name:*p*', { name: 'api' })).toBe(true);
    expect(holds('name:*', { name: null })).toBe(true);
    expect(holds('name:*', {})).toBe(false);
    expect(holds('name:"*"', { name: 'x' })).toBe(false);
  });

  it('that is negated holds of resources without the field', () => {
    expect(holds('!state:critical', {})).toBe(true);
    expect(holds('state!=critical', 'text')).toBe(true);
    expect(holds('!cpu>2', { cpu: 'x' })).toBe(true);
    expect(filterOf(parsed('!state:critical'))!(resource('k', 'AA==', { encoding: 'base64' }))).toBe(false);
  });

  it('is about the key, the revision, or a field of their names', () => {
    expect(holds('key:web/*', {}, 'web/1')).toBe(true);
    expect(holds('\\key:web', { key: 'web' })).toBe(true);
    expect(holds('revision>4', {})).toBe(true);
    expect(holds('value:7', 7)).toBe(true);
    expect(filterOf(parsed('key:a*'))!(resource(btoa('a\xff'), 1, { key_encoding: 'base64' }))).toBe(true);
  });

  it('orders texts by their characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        expect(Math.sign(orderOfTexts(a, b))).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
    );
  });
});

describe('the gateway', () => {
  it('gets the conditions on fields, and the page keeps the texts', () => {
    const { cel, rest } = split(parsed('state:critical !legacy cpu>2'));
    expect(cel).toBe('value.state == "critical" && value.cpu > 2');
    expect(rest).toEqual(parsed('!legacy'));
    expect(split(parsed('text')).cel).toBe('');
  });

  it('gets nothing that is longer than a parameter', () => {
    const query = parsed(`state:${'x'.repeat(2100)}`);
    expect(split(query)).toEqual({ cel: '', rest: query });
  });

  // internal/view/internal/predicate evaluates the same corpus: run both after a change.
  it('finds the same as the page, in a corpus that is up to date', () => {
    const file = new URL('corpus.json', import.meta.url);
    const { resources, queries } = corpus();
    const lines = (list: readonly unknown[]) => list.map((one) => JSON.stringify(one)).join(',\n');
    const now = `{"resources":[\n${lines(resources)}\n],"queries":[\n${lines(queries)}\n]}\n`;
    if (process.env['UPDATE']) writeFileSync(file, now);
    expect(readFileSync(file, 'utf8') === now, 'stale: run UPDATE=1 npx vitest run test/query').toBe(true);
  });
});
