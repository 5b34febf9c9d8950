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
  for (const chunk of chunks) feed(chunk);
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

// Returns the data of events, and what stands in the bytes in its place.
function placed(pieces: Uint8Array[]): Array<[data: string, there?: string]> {
  const found: Array<[string, string?]> = [];
  const event = (data: string, bytes?: Uint8Array, at = 0) =>
    found.push(bytes ? [data, Buffer.from(bytes.subarray(at, at + data.length)).toString()] : [data]);
  const feed = parser({ event, id: () => {}, retry: () => {} });
  const decoder = new TextDecoder();
  for (const piece of pieces) feed(decoder.decode(piece, { stream: true }), piece);
  return found;
}

test('what is said to be the bytes of an event is, wherever they are cut', () => {
  const lines = fc.array(
    fc.oneof(
      line,
      fc.string({ unit: 'grapheme' }).map((text) => `data: ${text}`),
    ),
    { maxLength: 5 },
  );
  const blocks = fc.array(fc.tuple(lines, fc.constantFrom('\n', '\n', '\n', '\r\n', '\r')));
  fc.assert(
    fc.property(blocks, fc.array(fc.nat(800)), (blocks, cuts) => {
      const bytes = Buffer.from(blocks.map(([lines, end]) => [...lines, '', ''].join(end)).join(''));
      const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      for (const [data, there = data] of placed(at.slice(1).map((end, i) => bytes.subarray(at[i], end)))) expect(there).toBe(data);
    }),
    { numRuns: 2_000 },
  );
});

test('the bytes of events with one for each character are known, except of lines that begin in another piece', () => {
  const text = ': x\ndata: one\n\ndata: zwölf\n\nevent: x\ndata: two\nid: 7\n\ndata: a\ndata: b\n\ndata: thr';
  expect(placed([Buffer.from(text), Buffer.from('ee\n\ndata: four\n\n')])).toEqual([
    ['one', 'one'],
    ['zwölf'],
    ['two', 'two'],
    ['a\nb'],
    ['three'],
    ['four', 'four'],
  ]);
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
