import { expect, it } from 'vitest';
import { has, toggled } from '../../src/resources/facet';

it.each([
  ['', 'state', 'bad', 'state:bad'],
  ['state:bad', 'state', 'bad', ''],
  ['state:good', 'state', 'bad', 'state:bad'],
  ['cpu>2 state:good,ok "two words"', 'state', 'bad', 'cpu>2 "two words" state:bad'],
  ['"state:bad"', 'state', 'bad', '"state:bad" state:bad'],
  ['name:"a b"', 'name', 'a b', ''],
  ['', 'a b', 'x"y', 'a\\ b:"x\\"y"'],
  ['a\\ b:"x\\"y" z', 'a b', 'x"y', 'z'],
  ['!state:bad', 'state', 'bad', '!state:bad state:bad'],
])('%j, by %s: %s', (filter, field, word, expected) => {
  expect(toggled(filter, field, word)).toBe(expected);
  expect(has(expected, field, word)).toBe(!has(filter, field, word));
});
