import { expect, it } from 'vitest';
import { comparator, ranker } from '../../src/resources/order';
import type { Row } from '../../src/resources/row';

function keysInOrder(keys: readonly string[], descending = false): string[] {
  const sort = { column: 'key', descending };
  const rank = ranker(sort);
  const rows = keys.map((key): Row => {
    const resource = { key, revision: '1', value: null };
    return { key, resource, rank: rank(resource), listed: true, createdAt: 0, deletedAt: 0 };
  });
  return rows.sort(comparator(sort)).map(({ key }) => key);
}

it('sorts whole numbers as keys by value, before text', () => {
  expect(keysInOrder(['10', 'a', '9', '007', '100', '7'])).toEqual(['7', '9', '10', '100', '007', 'a']);
  expect(keysInOrder(['10', 'a', '9'], true)).toEqual(['a', '10', '9']);
});

it('treats digits that are too many for a number as text', () => {
  expect(keysInOrder(['9007199254740993', '9007199254740992', '5'])).toEqual(['5', '9007199254740992', '9007199254740993']);
});
