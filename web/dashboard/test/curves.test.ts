import { describe, expect, it } from 'vitest';
import { curvesOf } from '../src/charts/curves';
import { Samples } from '../src/charts/samples';

function sampled(...readings: ReadonlyArray<Record<string, number>>): Samples {
  const samples = new Samples();
  readings.forEach((reading, i) => samples.note(new Map(Object.entries(reading)), (i + 1) * 1000));
  return samples;
}

const curves = (samples: Samples, ...names: string[]) => curvesOf(names, (name) => samples.of(name));

describe('curves', () => {
  it('have a value for each time, null if unknown', () => {
    const samples = sampled({ a: 1 }, { a: 2, b: NaN }, { a: 3, b: 7 });
    expect(curves(samples, 'a', 'b')).toEqual({
      times: [1000, 2000, 3000],
      curves: [
        { name: 'a', values: [1, 2, 3] },
        { name: 'b', values: [null, null, 7] },
      ],
    });
  });
  it('keep a value at its time if another name has more of them', () => {
    const samples = sampled({ a: 1, b: 5 });
    samples.note(
      new Map([
        ['a', 3],
        ['b', 7],
      ]),
      11_000,
    );
    samples.fill(new Map([['a', [{ at: 7000, value: 2 }]]]));
    const { times, curves: shown } = curves(samples, 'a', 'b');
    const at = (name: string, time: number) => shown.find((curve) => curve.name === name)!.values[times.indexOf(time)];
    expect([at('a', 1000), at('a', 7000), at('a', 11_000)]).toEqual([1, 2, 3]);
    expect([at('b', 1000), at('b', 7000), at('b', 11_000)]).toEqual([5, null, 7]);
  });
  it('are at most as many as there are colours, with the smallest added up', () => {
    const samples = sampled({ a: 1, b: 9, c: 8, d: 2, e: 7 });
    expect(curves(samples, 'a', 'b', 'c', 'd', 'e').curves).toEqual([
      { name: 'b', values: [9] },
      { name: 'c', values: [8] },
      { name: 'e', values: [7] },
      { name: '2 others', values: [3] },
    ]);
  });
  it('do not turn unknown values into zero', () => {
    const samples = sampled({ a: 5, b: 5, c: 5, d: NaN, e: NaN }, { a: 5, b: 5, c: 5, d: NaN, e: 1 });
    expect(curves(samples, 'a', 'b', 'c', 'd', 'e').curves.at(-1)).toEqual({ name: '2 others', values: [null, 1] });
  });
  it('are empty without samples', () => {
    expect(curves(new Samples())).toEqual({ times: [], curves: [] });
    expect(curves(new Samples(), 'a')).toEqual({ times: [], curves: [{ name: 'a', values: [] }] });
  });
});
