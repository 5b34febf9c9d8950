import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { barOf, rangeOf } from '../../src/resources/heat';

const resources = (...values: unknown[]) => values.map((value, i) => ({ key: `${i}`, value, revision: '1' }));
const get = ({ value }: { value: unknown }) => value;

describe('a bar', () => {
  it('reaches from zero to the value', () => {
    const range = rangeOf(get, resources(2, 8, 'x', undefined));
    expect(range).toEqual({ low: 0, high: 8 });
    expect(barOf(4, range)).toEqual({ from: 0, to: 50 });
    expect(barOf('x', range)).toBeUndefined();
    expect(barOf(-5, rangeOf(get, resources(-5, 5)))).toEqual({ from: 0, to: 50 });
    expect(barOf(5n, rangeOf(get, resources(-5, 5)))).toEqual({ from: 50, to: 100 });
    expect(rangeOf(get, resources(0, 0, 'a'))).toBeUndefined();
  });

  it('stays in its cell, whatever the numbers', () => {
    const number = fc.oneof(fc.double(), fc.bigInt(), fc.constant(Infinity));
    fc.assert(
      fc.property(fc.array(number), number, (sample, value) => {
        const bar = barOf(value, rangeOf(get, resources(...sample)));
        if (!bar || Number.isNaN(Number(value))) return;
        expect(bar.from).toBeGreaterThanOrEqual(0);
        expect(bar.to).toBeLessThanOrEqual(100);
        expect(bar.from).toBeLessThanOrEqual(bar.to);
      }),
    );
  });
});
