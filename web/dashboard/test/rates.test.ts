import { describe, expect, it } from 'vitest';
import { mean, Rates } from '../src/charts/rates';
import { most } from '../src/charts/samples';

function noted(...readings: ReadonlyArray<readonly [at: number, value: number]>): Rates {
  const rates = new Rates();
  for (const [at, value] of readings) rates.note(new Map([['notes', value]]), at, 'one');
  return rates;
}

const perSecond = (rates: Rates) => rates.of('notes').map((sample) => sample.value);

describe('rates', () => {
  it('are the increase of a counter divided by the time', () => {
    expect(perSecond(noted([1000, 5], [2000, 15], [4000, 15], [4500, 16]))).toEqual([NaN, 10, 0, 2]);
  });
  it('are unknown, never negative, when the gateway was restarted', () => {
    expect(perSecond(noted([1000, 900], [2000, 910], [3000, 4], [4000, 6]))).toEqual([NaN, 10, NaN, 2]);
  });
  it('are of the replica that answers, and never mix those of several', () => {
    const rates = new Rates();
    for (const [i, [count, instance]] of (
      [
        [5, 'one'],
        [15, 'one'],
        [900, 'two'],
        [910, 'two'],
        [940, 'one'],
        [941, 'one'],
      ] as const
    ).entries()) {
      rates.note(new Map([['notes', count]]), (i + 1) * 1000, instance);
    }
    expect(perSecond(rates)).toEqual([NaN, 10, 925 / 3, 1]);
    rates.note(new Map([['notes', 911]]), 7000, 'two');
    expect(perSecond(rates)).toEqual([NaN, 10, 1 / 3]);
    expect(rates.instances).toEqual(['one', 'two']);
  });
  it('forget replicas that have not answered for long', () => {
    const rates = new Rates();
    for (let i = 0; i < 100; i++) rates.note(new Map([['notes', i]]), i * 1000, `replica-${i}`);
    expect(rates.instances).toHaveLength(8);
    expect(rates.instances.at(-1)).toBe('replica-99');
  });
  it('ignore a repeated reading, and one that follows too soon', () => {
    expect(perSecond(noted([1000, 5], [1000, 5], [2000, 6], [2010, 7], [3000, 8]))).toEqual([NaN, 1, 2]);
  });
  it('start again when the clock was set back', () => {
    expect(noted([5000, 5], [6000, 6], [1000, 7], [2000, 9]).of('notes')).toEqual([
      { at: 1000, value: NaN },
      { at: 2000, value: 2 },
    ]);
  });
  it('keep ten minutes of one response per second', () => {
    const rates = noted(...Array.from({ length: 700 }, (_, i) => [(i + 1) * 1000, i] as const));
    expect(rates.of('notes')).toHaveLength(600);
    expect(rates.of('notes').at(-1)).toEqual({ at: 700_000, value: 1 });
  });
  it('forget a removed watch', () => {
    const rates = noted([1000, 5], [2000, 6]);
    rates.note(new Map([['other', 1]]), 3000, 'one');
    expect(rates.of('notes')).toEqual([]);
  });
});

describe('the mean', () => {
  it('is weighted by time, and leaves out unknown values', () => {
    expect(mean(noted([1, 0], [3001, 30], [4001, 70]).of('notes'), 5000)).toBe(17.5);
    expect(mean(noted([1, 900], [1001, 0], [2001, 4]).of('notes'), 5000)).toBe(4);
  });
  it('covers only the newest', () => {
    expect(mean(noted([1, 0], [1001, 500], [2001, 501], [3001, 504]).of('notes'), 2000)).toBe(2);
  });
  it('counts only the part of a long sample that is in the window', () => {
    expect(mean(noted([1, 0], [60_001, 0], [61_001, 20]).of('notes'), 5000)).toBe(4);
  });
  it('is unknown before there are two readings', () => {
    expect(mean(noted([1, 0]).of('notes'), 5000)).toBeNaN();
    expect(mean([], 5000)).toBeNaN();
  });
});

it('the highest value in the window ignores unknown ones', () => {
  const rates = noted([1000, 0], [2000, 90], [3000, 0], [4000, 7], [5000, 9]);
  expect(most(rates.of('notes'), 10_000)).toBe(90);
  expect(most(rates.of('notes'), 2500)).toBe(7);
  expect(most([], 1000)).toBeNaN();
});
