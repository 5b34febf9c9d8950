import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parser } from '../src/sse.js';

function ours(chunks: string[]): string[] {
  const found: string[] = [];
  const feed = parser({
    event: (data) => found.push(`event ${data}`),
    id: (id) => found.push(`id ${id}`),
    retry: (ms) => found.push(`retry ${ms}`),
  });
  chunks.forEach(feed);
  return found;
}

function theirs(text: string): string[] {
  const found: string[] = [];
  const { feed } = createParser({
    onEvent: ({ data, id }) => {
      if (data) found.push(`event ${data}`);
      if (id !== undefined) found.push(`id ${id}`);
    },
    onRetry: (ms) => found.push(`retry ${ms}`),
  });
  feed(text);
  return found;
}

const line = fc.oneof(
  fc.constantFrom(
    'data: x',
    'data:y',
    'data:  z',
    'data',
    'id: 7',
    'id:',
    'id: a\0b',
    'retry: 10',
    'retry: 1x',
    ': note',
    'event: upsert',
    'other: 1',
    'data: a:b',
    '',
  ),
  fc.string(),
);

// The usual package drops the id of an event without data, which the standard does
// not: so each block has some.
const block = fc
  .tuple(fc.array(line, { maxLength: 5 }), fc.constantFrom('\n', '\r\n', '\r'))
  .map(([lines, end]) => ['data: d', ...lines.map((one) => one.replace(/[\r\n]/g, '')).filter(Boolean), '', ''].join(end));

test('parses like the usual package, wherever the text is cut', () => {
  fc.assert(
    fc.property(fc.array(block), fc.array(fc.nat(400)), (blocks, cuts) => {
      const text = `${blocks.join('')}:\n`;
      const at = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
      const chunks = at.slice(1).map((end, i) => text.slice(at[i], end));
      expect(ours(chunks)).toEqual(theirs(text));
    }),
    { numRuns: 2_000 },
  );
});

test('an incomplete event is ignored', () => {
  expect(ours(['data: a\n\ndata: b\nid: 1\n'])).toEqual(['event a']);
});

test('an id may stand alone', () => {
  expect(ours(['id: 5\n\n'])).toEqual(['id 5']);
});

test('a line end in two chunks is one', () => {
  expect(ours(['data: a\r', '\nid: 1\r\n\r', '\n'])).toEqual(['event a', 'id 1']);
});
