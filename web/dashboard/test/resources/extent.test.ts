import { describe, expect, it } from 'vitest';
import { extentOf, rowHeights } from '../../src/resources/extent';

const rowHeight = rowHeights.comfortable;

describe('the extent of rows', () => {
  it('is their height', () => {
    expect(extentOf(100_000, 500, rowHeight)).toEqual({ height: 100_000 * rowHeight, ratio: 1 });
  });

  it('is limited to what browsers support, and ends with the last row', () => {
    const rows = 3_000_000;
    const { height, ratio } = extentOf(rows, 500, rowHeight);
    expect(height).toBeLessThan(17_000_000);
    expect((height - 500) * ratio + 500).toBeCloseTo(rows * rowHeight);
  });
});
