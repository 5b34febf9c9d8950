import { describe, expect, it } from 'vitest';
import { area, outlines } from '../src/charts/sparkline';

const samples = (...values: number[]) => values.map((value, i) => ({ at: i * 1000, value }));

describe('a sparkline', () => {
  it('ends at the right edge and steps where the rate does', () => {
    expect(outlines(samples(NaN, 0, 10), 2000, 10)).toEqual(['M0 23H60V1H120']);
  });
  it('draws equal rates as one line', () => {
    expect(outlines(samples(NaN, 3, 3, 3, 3), 4000, 3)).toEqual(['M0 1H120']);
  });
  it('has a gap where values are unknown', () => {
    expect(outlines(samples(NaN, 4, NaN, 4, 4), 4000, 4)).toEqual(['M0 1H30', 'M60 1H120']);
  });
  it('starts at the left edge with what is older than the window', () => {
    expect(outlines(samples(NaN, 5, 5, 5, 5), 2500, 5)).toEqual(['M0 1H120']);
  });
  it('is empty before there are two readings', () => {
    expect(outlines(samples(NaN), 2000, 1)).toEqual([]);
    expect(outlines([], 2000, 1)).toEqual([]);
  });
  it('closes its area along the bottom', () => {
    expect(area('M60 1H120')).toBe('M60 1H120V24H60Z');
  });
});
