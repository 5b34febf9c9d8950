import fc from 'fast-check';
import { expect, test } from 'vitest';
import { elementsOf, valueText } from '../src/json_text.js';

const lastOf = (json: string) => Object.keys(JSON.parse(json)).at(-1)!;
const textOf = (json: string) => valueText(json, lastOf(json));

test.each([
  ['{"type":"upsert","watch":"w","key":"k","revision":"7","value":{"a":1.0}}', '{"a":1.0}'],
  ['{"type":"upsert","watch":"w","key":"k\\"","revision":"7","value":"\\u00e4}"}', '"\\u00e4}"'],
  ['{"type":"upsert","key":"\\\\","value":-0.50e3}', '-0.50e3'],
  ['{"value":[{"value":1}, {"x":"]"}],"key":"k"}', '[{"value":1}, {"x":"]"}]'],
  ['{ "key" : "k" , "value" : true }', 'true'],
  ['{"labels":{"value":1},"value": null\n}', 'null'],
  ['{"key":"k","value":1,"value":2,"x":3}', '2'],
  ['{"key":",\\"value\\":1","v\\u0061lue":2}', '2'],
  ['{"key":"k"}', undefined],
  ['[1]', undefined],
])('the value of %s is %s', (json, text) => {
  expect(textOf(json)).toBe(text);
});

const spaces = fc.constantFrom('', '', ' ', '\n\t');
const members = fc.dictionary(fc.constantFrom('type', 'watch', 'key', 'a"b', 'val\\ue'), fc.jsonValue(), { maxKeys: 4 });

test('the text of a value is found wherever it stands', () => {
  fc.assert(
    fc.property(members, fc.jsonValue(), members, spaces, (before, value, after, space) => {
      const text = JSON.stringify(value, null, space);
      const rest = Object.entries(after).filter(([name]) => !(name in before));
      const all = [...Object.entries(before), ['value'], ...rest];
      const one = ([name, other]: unknown[]) =>
        `${space}${JSON.stringify(name)}${space}:${space}${name === 'value' ? text : JSON.stringify(other)}${space}`;
      expect(textOf(`{${all.map(one).join()}}`)).toBe(text);
    }),
    { numRuns: 500 },
  );
});

test('the texts of elements', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), members, spaces, (list, more, space) => {
      const texts = list.map((one) => JSON.stringify(one));
      const json = `{"more":${JSON.stringify(more)},"list":[${space}${texts.join(`${space},${space}`)}${space}]}`;
      expect(elementsOf(json, 'list')).toEqual(texts);
    }),
    { numRuns: 500 },
  );
  expect(elementsOf('{"list":{}}', 'list')).toEqual([]);
  expect(elementsOf('{}', 'list')).toEqual([]);
});
