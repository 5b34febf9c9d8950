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
