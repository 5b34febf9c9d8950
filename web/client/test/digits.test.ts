import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from '../src/digits.js';

describe('JSON that is parsed with all digits', () => {
  it.each([
    ['{"id":9007199254740993}', { id: 9007199254740993n }],
    ['[-123456789012345678901234, 5]', [-123456789012345678901234n, 5]],
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', 9007199254740993n],
    [' -9007199254740993 ', -9007199254740993n],
    ['{"t":"\\":9007199254740993","id":18446744073709551615}', { t: '":9007199254740993', id: 18446744073709551615n }],
    ['[1234567890123456789.5, 12345678901234567890e3]', [1234567890123456789.5, 12345678901234567890e3]],
    ['{"9007199254740993":["\\\\",9007199254740993]}', { '9007199254740993': ['\\', 9007199254740993n] }],
    ['[{"":-9007199254740993},-0.0000010000000034558431]', [{ '': -9007199254740993n }, -0.0000010000000034558431]],
    ['["\\udfffinteger 5","\\udfff",9007199254740993]', ['\udfffinteger 5', '\udfff', 9007199254740993n]],
    ['["\\uDFFFinteger 5",9007199254740993]', ['\udfffinteger 5', 9007199254740993n]],
    ['{"\\udfffinteger 5" : 9007199254740993}', { '\udfffinteger 5': 9007199254740993n }],
    ['{"a":1,"b":{},"c":[[],"\\""],"a":9007199254740993}', { a: 9007199254740993n, b: {}, c: [[], '"'] }],
    ['[true,false,null,"",-0,9007199254740993]', [true, false, null, '', -0, 9007199254740993n]],
  ])('reads %s', (json, value) => {
    expect(parse(json)).toEqual(value);
  });

  it.each([
    '{"a":9007199254740993',
    '[09007199254740993]',
    '["\\x",9007199254740993]',
    '[9007199254740993,]',
    '{9007199254740993:1}',
    '9007199254740993.5.9007199254740993',
    '["\\udfff\\',
    '',
  ])('is invalid if JSON.parse rejects it: %s', (json) => {
    expect(() => JSON.parse(json)).toThrow(SyntaxError);
    expect(() => parse(json)).toThrow(SyntaxError);
  });
});

// Values as they are in JSON, with strings that look like the marks.
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, 0.5, 1e300, '\udfffinteger 7', '\udfff', '"\udfffinteger 7', '\udfff\udfffx', '\\'),
    fc.string({ unit: 'binary' }),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Number.isInteger(n) && !Number.isSafeInteger(n) ? 0.25 : n || 0)),
    fc.maxSafeInteger(),
    fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }),
    fc.bigInt({ min: -(2n ** 80n), max: -(2n ** 53n) }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('\udfffinteger 7', '9007199254740993')), tie('value'), { maxKeys: 4 }),
  ),
}));

it('reads what it writes', () => {
  fc.assert(
    fc.property(value, (value) => void expect(parse(stringify(value))).toEqual(value)),
    { numRuns: 1_000 },
  );
});

it('equals JSON.parse, except that large integers have their digits', () => {
  const rounded = (value: unknown): unknown => {
    if (typeof value === 'bigint') return Number(value);
    if (Array.isArray(value)) return value.map(rounded);
    if (typeof value !== 'object' || !value) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, rounded(one)]));
  };
  fc.assert(
    fc.property(fc.oneof(value.map(stringify), fc.json()), (json) => void expect(rounded(parse(json))).toEqual(JSON.parse(json))),
    { numRuns: 1_000 },
  );
});

it('accepts no text that JSON.parse rejects, and rejects none that it accepts', () => {
  const pieces = fc.constantFrom(
    '"',
    '\\',
    '\\u',
    'dfff',
    '9007199254740993',
    '-',
    '0',
    '[',
    ']',
    '{',
    '}',
    ':',
    ',',
    ' ',
    'e1',
    '.5',
    '\n',
    '\udfff',
  );
  const accepts = (run: () => unknown) => {
    try {
      run();
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 12 }).map((all) => all.join('')),
      (json) => void expect(accepts(() => parse(json))).toBe(accepts(() => JSON.parse(json))),
    ),
    { numRuns: 5_000 },
  );
});

it('reads a field called __proto__ as JSON.parse does', () => {
  const value = parse('{"__proto__":{"n":9007199254740993}}') as object;
  expect([Object.keys(value), Object.getPrototypeOf(value)]).toEqual([['__proto__'], Object.prototype]);
});

describe('a text without limits', () => {
  const large = 'x'.repeat(8 << 20);

  it.each([
    ['a long string', large],
    ['a long string of escapes', '\\"'.repeat(2 << 20)],
    ['a long name', { [large]: 1 }],
    ['many strings', Array.from({ length: 100_000 }, (_, i) => `"\\${i}`)],
  ])('with %s is read and written', (_, value) => {
    const both = [value, 9007199254740993n];
    const json = `[${JSON.stringify(value)},9007199254740993]`;
    expect(stringify(both) === json).toBe(true);
    expect(stringify(parse(json)) === json).toBe(true);
  });

  it.each([3_000, 100_000])('with %d levels is read', (levels) => {
    const json = `${'{"a":['.repeat(levels)}9007199254740993${']}'.repeat(levels)}`;
    let value = parse(json);
    for (let i = 0; i < levels; i++) [value] = (value as { a: unknown[] }).a;
    expect(value).toBe(9007199254740993n);
  });
});
