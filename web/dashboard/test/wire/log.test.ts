import { expect, it } from 'vitest';
import type { Frame } from '../../src/wire/frame';
import { Log } from '../../src/wire/log';

const frame = (number: number, bytes = 10): Frame => ({
  number,
  type: number % 2 ? 'upsert' : 'delete',
  id: '',
  raw: '',
  bytes,
  at: 0,
  after: 0,
});

it('keeps the newest frames, and counts all', () => {
  const log = new Log();
  for (let number = 1; number <= 100_000; number++) log.add(frame(number));
  const { frames, dropped, bytes, types } = log.kept;
  expect([frames.length, frames[0]?.number, frames.at(-1)?.number]).toEqual([5000, 95_001, 100_000]);
  expect([dropped, bytes, [...types]]).toEqual([
    95_000,
    1_000_000,
    [
      ['upsert', 50_000],
      ['delete', 50_000],
    ],
  ]);
});

it('keeps fewer large frames, but always the newest', () => {
  const log = new Log();
  for (let number = 1; number <= 10; number++) log.add(frame(number, 10 << 20));
  expect(log.kept.frames.map(({ number }) => number)).toEqual([8, 9, 10]);
  log.add(frame(11, 100 << 20));
  expect(log.kept.frames.map(({ number }) => number)).toEqual([11]);
  expect(log.kept.dropped).toBe(10);
});

it('does not change contents that it has returned', () => {
  const log = new Log();
  log.add(frame(1));
  const before = log.kept;
  log.add(frame(3));
  expect([before.frames.length, before.types.get('upsert'), before.bytes]).toEqual([1, 1, 10]);
});
