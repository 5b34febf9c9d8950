import { expect, it } from 'vitest';
import { comparing, ranking } from '../../src/resources/order';
import type { Row } from '../../src/resources/rows';

function keysInOrder(keys: readonly string[], descending = false): string[] {
  const sort = { column: 'key', descending };
  const rank = ranking(sort);
  const rows = keys.map((key): Row => {
    const resource = { key, revision: '1', value: null };
    return { key, resource, rank: rank(resource), listed: true, born: 0, gone: 0 };
  });
  return rows.sort(comparing(sort)).map(({ key }) => key);
}

it('puts keys that are whole numbers by their size, before text', () => {
  expect(keysInOrder(['10', 'a', '9', '007', '100', '7'])).toEqual(['7', '9', '10', '100', '007', 'a']);
  expect(keysInOrder(['10', 'a', '9'], true)).toEqual(['a', '10', '9']);
});

it('takes digits that no number can hold for text', () => {
  expect(keysInOrder(['9007199254740993', '9007199254740992', '5'])).toEqual(['5', '9007199254740992', '9007199254740993']);
});
