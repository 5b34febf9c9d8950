import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { highlight } from '../../src/editor/highlight';
import { diffLines } from '../../src/editor/lines';
import { fromYAML, toYAML } from '../../src/editor/yaml';

const back = (json: string) => {
  const yaml = toYAML(json);
  if (typeof yaml !== 'string') throw new Error(yaml.reason);
  const found = fromYAML(yaml);
  if (!('json' in found)) throw new Error(`${found.reason} at ${found.line}:${found.column} of\n${yaml}`);
  return found.json;
};
const fault = (yaml: string) => fromYAML(yaml);

describe('YAML', () => {
  it('keeps every digit, the order, and what is text', () => {
    const json =
      '{"z":9007199254740993,"a":1.10,"e":1e400,"n":"12","t":"true","v":"null","b":[true,null,-0.0],"__proto__":{"x":"y"},"d":"2026-11-25","y":"no"}';
    expect(back(json)).toBe(json);
    expect(toYAML('{"a":[1,"2"],"b":{"c":"x"}}')).toBe('a:\n  - 1\n  - "2"\nb:\n  c: x\n');
  });

  it('is the same JSON when it comes back, whatever the value', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '0x1F',
        '.inf',
        '~',
        '',
        ' ',
        'a: b',
        '# x',
        '- y',
        '&a',
        '*a',
        '!t',
        'a\n',
        '\n',
        '\ta',
        '<<',
        '012',
        '+1',
        '1.',
        '|',
        '>',
        'x\ny\n\n',
      ),
    );
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        text,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(text, tie('value'), { maxKeys: 4 }),
      ),
    })).value;
    fc.assert(
      fc.property(value, (value) => {
        const json = JSON.stringify(value);
        expect(back(json)).toBe(json);
      }),
      { numRuns: 300 },
    );
  });

  it('is converted, or has a fault with its place, whatever the text', () => {
    const piece = fc.constantFrom(
      'a',
      ':',
      ' ',
      '\n',
      '- ',
      '"',
      "'",
      '[',
      '}',
      '&x',
      '*x',
      '!!int',
      '0x',
      '|',
      '#',
      '?',
      '%',
      '---',
      '\t',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 15 }), (pieces) => {
        const found = fromYAML(pieces.join(''));
        if ('json' in found) return void JSON.parse(found.json);
        expect(found.line).toBeGreaterThan(0);
        expect(found.column).toBeGreaterThan(0);
        expect(found.reason).not.toBe('');
      }),
      { numRuns: 300 },
    );
  });

  it('has faults where JSON has nothing like it', () => {
    expect(fault('a: 1\nb: 0x1F')).toMatchObject({ line: 2, column: 4, reason: expect.stringContaining('0x1F') });
    expect(fault('a: .nan')).toMatchObject({ line: 1, column: 4 });
    expect(fault('a: 1\n1: x')).toMatchObject({ line: 2, column: 1, reason: expect.stringContaining('quotes') });
    expect(fault('a: 1\na: 2')).toMatchObject({ line: 2 });
    expect(fault('a: !!binary x')).toHaveProperty('reason');
    expect(fault('--- 1\n--- 2')).toHaveProperty('reason');
    expect(fault('a: *b')).toHaveProperty('reason');
    expect(toYAML('{"a":1,"a":2}')).toMatchObject({ line: 1, column: 8 });
  });

  it('expands aliases, up to a limit', () => {
    expect(fromYAML('a: &x [1]\nb: *x')).toEqual({ json: '{"a":[1],"b":[1]}' });
    const bomb = ['a0: &a0 [1]', ...Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`)].join('\n');
    expect(fromYAML(bomb)).toMatchObject({ reason: expect.stringContaining('parts') });
    expect(fromYAML('&a [*a]')).toHaveProperty('reason');
  });
});

describe('a difference', () => {
  const texts = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 }).map((lines) => lines.join('\n'));

  it('leads from one text to the other', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        const lines = diffLines(before, after);
        const side = (kind: string) =>
          lines
            .filter((line) => line.kind === 'same' || line.kind === kind)
            .map(({ text }) => text)
            .join('\n');
        expect(side('removed')).toBe(before);
        expect(side('added')).toBe(after);
      }),
    );
  });

  it('is as small as it can be', () => {
    const marks = { same: ' ', added: '+', removed: '-' };
    const shown = (before: string, after: string) => diffLines(before, after).map(({ kind, text }) => marks[kind] + text);
    expect(shown('a\nb\nc', 'a\nx\nc')).toEqual([' a', '-b', '+x', ' c']);
    expect(shown('a\nb', 'a\nb')).toEqual([' a', ' b']);
    expect(shown('a\nb\nc\nd', 'b\nd\ne')).toEqual(['-a', ' b', '-c', ' d', '+e']);
  });
});

describe('highlighting', () => {
  it.each(['json', 'yaml'] as const)('changes nothing in a text of %s', (language) => {
    const piece = fc.constantFrom('"', '\\', ':', '{', 'a', '1', 'true', '\n', "'", '- ', ' ');
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 15 }), (pieces) => {
        const text = pieces.join('');
        expect(
          highlight(text, language)
            .map(({ text }) => text)
            .join(''),
        ).toBe(text);
      }),
    );
  });

  it('tells names from texts and numbers', () => {
    const kinds = (text: string, language: 'json' | 'yaml') =>
      highlight(text, language)
        .filter(({ kind }) => kind)
        .map(({ text, kind }) => `${kind} ${text}`);
    expect(kinds('{"a": "b", "n": [-1.5e3, true]}', 'json')).toEqual(['name "a"', 'string "b"', 'name "n"', 'number -1.5e3', 'word true']);
    expect(kinds('a: "b"\nn:\n  - 2\n  - true', 'yaml')).toEqual(['name a', 'string "b"', 'name n', 'number 2', 'word true']);
  });
});
