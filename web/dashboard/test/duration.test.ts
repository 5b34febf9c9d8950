import { expect, it } from 'vitest';
import { duration } from '../src/text/duration';

it.each([
  [0, '0 s'],
  [999, '0 s'],
  [3000, '3 s'],
  [60_000, '1 min'],
  [125_000, '2 min 5 s'],
  [3_600_000, '1 h'],
  [3_605_000, '1 h'],
  [90_000_000, '1 d 1 h'],
])('%d ms is %s', (ms, text) => {
  expect(duration(ms)).toBe(text);
});
