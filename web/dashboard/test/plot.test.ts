import { describe, expect, it } from 'vitest';
import { drawn, period } from '../src/charts/plot';
import { count } from '../src/text/number';

const data = {
  times: [1000, 2000],
  curves: [
    { name: 'reconnects', values: [3, 0] },
    { name: 'resyncs', values: [1, null] },
  ],
};
const options = { format: count, whole: true };

describe('the data that is drawn', () => {
  it('has times in seconds', () => {
    expect(drawn(data, { ...options, bars: false })).toEqual([
      [1, 2],
      [3, 0],
      [1, null],
    ]);
  });
  it('has bars stacked', () => {
    expect(drawn(data, { ...options, bars: true })).toEqual([
      [1, 2],
      [4, 0],
      [1, 0],
    ]);
  });
});

describe('the period that is shown', () => {
  it('ends with the last time, even if it is the only one', () => {
    expect(period([1000], false)).toEqual([940, 1000]);
    expect(period([1000, 1002], false)).toEqual([942, 1002]);
    expect(period([1000, 1100, 1200], false)).toEqual([1000, 1200]);
  });
  it('has room for the last bar', () => {
    expect(period([1000, 1060], true)).toEqual([1000, 1120]);
  });
});
