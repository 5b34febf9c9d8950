import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Turns } from '../src/turns.js';

let now = 0;

beforeEach(() => {
  now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});

afterEach(() => vi.restoreAllMocks());

/** Reads pieces that are there already, each of which takes some time. Returns those that were read before a task of the page. */
async function readUntilTask(ms: number, waitedMs = 0): Promise<number> {
  let had = false;
  setTimeout(() => {
    had = true;
  });
  const turns = new Turns();
  let read = 0;
  for (; !had && read < 100; read++) {
    const piece = Promise.resolve().then(() => {
      now += waitedMs;
    });
    await turns.after(piece);
    now += ms;
  }
  return read;
}

test('a page has its turn after some milliseconds, although there is always more', async () => {
  expect(await readUntilTask(5)).toBeLessThan(20);
});

test('short work does not wait', async () => {
  expect(await readUntilTask(0.01)).toBe(100);
});

test('who has waited has let the page have its turn', async () => {
  expect(await readUntilTask(5, 2)).toBe(100);
});
