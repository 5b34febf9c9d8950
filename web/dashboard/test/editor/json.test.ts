import { describe, expect, it } from 'vitest';
import { findFault, format, member } from '../../src/editor/json';

describe('a fault', () => {
  it.each([
    ['', 1, 1, 'expected a value, found the end of the text'],
    ['{"a":1,}', 1, 8, 'expected a name in double quotes, found “}”'],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'found a string that is not closed, or has'],
    ['{"a" 1}', 1, 6, 'a colon'],
    ['[1, 2', 1, 6, 'expected a comma or ], found the end of the text'],
    ['[1,\n 2}', 2, 3, 'expected a comma or ], found “}”'],
    ['[01]', 1, 3, 'expected a comma or ], found “1”'],
    ["{'a':1}", 1, 2, "“'”"],
    ['{"a": undefined}', 1, 7, 'expected a value, found “undefined”'],
    ['{"a":1} x', 1, 9, 'expected the end of the text, found “x”'],
    ['"a\nb"', 1, 1, 'must be escaped'],
    ['\u00a01', 1, 1, 'a value'],
  ])('of %j is at line %d, column %d', (text, line, column, reason) => {
    expect(findFault(text)).toMatchObject({ line, column });
    expect(findFault(text)?.reason).toContain(reason);
  });

  it('is found exactly when JSON.parse finds one, in randomly damaged text', () => {
    const random = generator(7);
    let broken = 0;
    for (let i = 0; i < 3000; i++) {
      const text = damaged('{"a": [1, -2.5e+3, "x\\u00e9\\n", true], "b": {}, "c": [], "d": null}', random);
      const fault = findFault(text);
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      expect(fault === undefined, text).toBe(valid);
      if (!fault) continue;
      broken++;
      // The text before the fault must be the beginning of valid JSON.
      expect(findFault(text.slice(0, fault.at))?.reason ?? '', text).toMatch(/^$|, found the end of the text$/);
    }
    expect(broken).toBeGreaterThan(1000);
  });
});

describe('format', () => {
  it('puts one member on each line, and keeps every token', () => {
    expect(format('{"n":12345678901234567890.10,"e":1E400,"s":"a\\u0041 ,{","o":{},"l":[],"m":[1,{"k":null}]}')).toBe(
      '{\n  "n": 12345678901234567890.10,\n  "e": 1E400,\n  "s": "a\\u0041 ,{",\n  "o": {},\n  "l": [],\n  "m": [\n    1,\n    {\n      "k": null\n    }\n  ]\n}',
    );
  });
  it.each(['1', '"a"', '[[]]', '{"a":[[],{}]}', ' [ 1 , 2 ] '])('changes only whitespace in %j', (text) => {
    expect(JSON.parse(format(text))).toEqual(JSON.parse(text));
    expect(format(format(text))).toBe(format(text));
  });
  it('can handle long strings', () => {
    const long = JSON.stringify(`${'é\\"'.repeat(300_000)}`);
    expect(format(`[${long}]`)).toBe(`[\n  ${long}\n]`);
  });
});

describe('a member', () => {
  const text = '{"key":"value","v":{"value":2},"value":{"big":12345678901234567890,"l":[1, 2]},"encoding":"x"}';
  it('is returned verbatim, from the outer object only', () => {
    expect(member(text, 'value')).toBe('{"big":12345678901234567890,"l":[1, 2]}');
    expect(member('{"value" : 1.0 }', 'value')).toBe('1.0');
    expect(member('{"v\\u0061lue":[]}', 'value')).toBe('[]');
  });
  it('may be missing', () => {
    expect(member(text, 'nothing')).toBeUndefined();
  });
});

function damaged(text: string, random: (n: number) => number): string {
  const signs = '{}[]:,"\\01x \n';
  for (let i = random(3); i >= 0; i--) {
    const at = random(text.length);
    text = text.slice(0, at) + (random(2) ? signs[random(signs.length)] : '') + text.slice(at + random(2));
  }
  return text;
}

// Numbers below n, the same in every run.
function generator(state: number): (n: number) => number {
  return (n) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * n);
  };
}
