import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from '../src/gateway/digits';

describe('JSON that is parsed with all digits', () => {
  it.each([
    ['{"id":9007199254740993}', { id: 9007199254740993n }],
    ['[-123456789012345678901234, 5]', [-123456789012345678901234n, 5]],
    ['9007199254740991', 9007199254740991],
    ['{"t":"\\":9007199254740993","id":18446744073709551615}', { t: '":9007199254740993', id: 18446744073709551615n }],
    ['[1234567890123456789.5, 12345678901234567890e3]', [1234567890123456789.5, 12345678901234567890e3]],
    ['{"9007199254740993":["\\\\",9007199254740993]}', { '9007199254740993': ['\\', 9007199254740993n] }],
  ])('reads %s', (json, value) => {
    expect(parse(json)).toEqual(value);
  });

  it('equals the result of JSON.parse if that loses nothing', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const value: unknown = JSON.parse(json);
        fc.pre(JSON.stringify(value) === json && !/\d{16}/.test(json.replace(/"(?:[^"\\]|\\.)*"/g, '')));
        expect(parse(json)).toEqual(value);
      }),
    );
  });

  it('is invalid if JSON.parse rejects it', () => {
    expect(() => parse('{"a":9007199254740993')).toThrow(SyntaxError);
    expect(() => parse('[09007199254740993]')).toThrow(SyntaxError);
  });
});
