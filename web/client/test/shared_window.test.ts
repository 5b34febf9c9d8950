import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SharedOptions } from '../src/shared.js';
import type { Watches } from '../src/watch.js';
import { type LiveWindow, type WindowView, watchWindow } from '../src/window.js';
import type { Tab } from './browser.js';
import { pass } from './server.js';
import { browser, open, server, sharing } from './sharing.js';
import { type Fate, Gateway, type Row } from './window_gateway.js';

sharing();

const order = { watch: 'w', order: 'n', limit: 3 } as const;

let gateway: Gateway;
let all: Array<LiveWindow<Row>>;

beforeEach(() => {
  all = [];
  gateway = new Gateway(server);
  gateway.commit(Array.from({ length: 10 }, (_, n) => [`k${n}`, { n, v: 0 }]));
});

afterEach(() => {
  for (const live of all) live.close();
});

const settle = async () => {
  await pass(50);
  gateway.answer();
  await pass(50);
};
const streams = () => server.exchanges.filter(({ url }) => url.pathname.endsWith('/v1/events'));
const numbers = ({ view }: LiveWindow<Row>) => view.rows.map(({ value }) => value.n);

interface Page {
  readonly tab: Tab;
  readonly live: LiveWindow<Row>;
  readonly views: Array<WindowView<Row>>;
}

/** A tab with a window. */
async function page(offset = 0, options: SharedOptions = {}): Promise<Page> {
  const tab = browser.tab();
  const { tide } = open([], options, tab);
  const live = tab.run(() => watchWindow(tide as unknown as Watches<{ w: Row }>, { ...order, offset }));
  all.push(live);
  const views: Array<WindowView<Row>> = [];
  live.subscribe((view) => views.push(view));
  for (let i = 0; i < 3; i++) await settle();
  return { tab, live, views };
}

const move = ({ tab, live }: Page, offset: number) => tab.run(() => live.move({ offset }));

/** It has had rows in sync since the first ones. */
function expectSteady({ views }: Page) {
  const shown = views.slice(views.findIndex(({ state }) => state === 'in_sync'));
  for (const { rows, state } of shown) expect([rows.length, state]).toEqual([3, 'in_sync']);
}

test('a window moves on the stream that tabs share', async () => {
  const one = await page();
  const [, , third] = one.live.view.rows;
  move(one, 2);
  expect(one.live.view.moving).toBe(true);
  await settle();
  await settle();
  expect(numbers(one.live)).toEqual([2, 3, 4]);
  expect(one.live.view).toMatchObject({ moving: false, before: 2, total: 10 });
  expect(one.live.view.rows[0]).toBe(third);
  move(one, 4);
  await settle();
  await settle();
  expect(numbers(one.live)).toEqual([4, 5, 6]);
  expectSteady(one);
  expect([streams().length, gateway.moves.length]).toEqual([1, 2]);
});

test('a window that another tab has too stays there', async () => {
  const [one, two] = [await page(), await page()];
  expect(streams()).toHaveLength(1);
  move(one, 2);
  for (let i = 0; i < 3; i++) await settle();
  expect([numbers(one.live), numbers(two.live)]).toEqual([
    [2, 3, 4],
    [0, 1, 2],
  ]);
  expect(gateway.moves).toHaveLength(0);
  expect(streams()).toHaveLength(2);
  move(one, 4);
  for (let i = 0; i < 3; i++) await settle();
  expect(numbers(one.live)).toEqual([4, 5, 6]);
  expect([streams().length, gateway.moves.length]).toEqual([2, 1]);
  expectSteady(one);
  expectSteady(two);
  expect(two.views.every(({ moving }) => !moving)).toBe(true);
});

test('a window that another tab has is there at once', async () => {
  const [one, two] = [await page(), await page(2)];
  const before = server.exchanges.length;
  move(one, 2);
  await pass(50);
  expect(numbers(one.live)).toEqual([2, 3, 4]);
  expect(one.live.view.moving).toBe(false);
  gateway.commit([['k3', { n: 3, v: 1 }]]);
  await pass(50);
  expect(one.live.view.rows).toEqual(two.live.view.rows);
  await settle();
  expect(server.exchanges.length).toBeLessThanOrEqual(before + 1); // the stream without the window that nobody has
  expectSteady(one);
});

test('a tab that opens a window which another one moves to sees it when it is there', async () => {
  const one = await page();
  gateway.fates.push('rows late');
  move(one, 2);
  await pass(50);
  const tab = browser.tab();
  const { tide } = open([], {}, tab);
  const live = tab.run(() => watchWindow(tide as unknown as Watches<{ w: Row }>, { ...order, offset: 2 }));
  all.push(live);
  await pass(200);
  expect(live.view.rows).toEqual([]);
  for (let i = 0; i < 3; i++) await settle();
  expect([numbers(live), numbers(one.live)]).toEqual([
    [2, 3, 4],
    [2, 3, 4],
  ]);
  expect(streams()).toHaveLength(1);
  expectSteady(one);
});

test('a window that a tab has had some time ago is there when it is in sync again', async () => {
  const [one, two, three] = [await page(), await page(), await page(2)];
  three.live.close();
  await settle();
  gateway.commit([['k3', { n: 3, v: 1 }]]);
  move(one, 2);
  await pass(50);
  expect([numbers(one.live), one.live.view.moving]).toEqual([[0, 1, 2], true]);
  for (let i = 0; i < 3; i++) await settle();
  expect(one.live.view.rows[1]).toMatchObject({ value: { n: 3, v: 1 } });
  expectSteady(one);
  expectSteady(two);
});

test('a move does not wait for the rate of a tab', async () => {
  const one = await page(0, { maxRate: () => ({ rate: '12/m' }) });
  gateway.commit([['k0', { n: 0, v: 1 }]]); // it waits
  await pass(10);
  for (const offset of [2, 4]) {
    move(one, offset);
    await settle();
    expect([numbers(one.live)[0], one.live.view.moving]).toEqual([offset, false]);
  }
});

test.each<Fate>(['lost', 404, 403])('a move that is %s takes another stream of the hub', async (fate) => {
  const one = await page();
  gateway.fates.push(fate);
  move(one, 2);
  for (let i = 0; i < 3; i++) await settle();
  expect(numbers(one.live)).toEqual([2, 3, 4]);
  expect(one.live.view.moving).toBe(false);
  expectSteady(one);
  expect(streams().filter(({ open }) => open)).toHaveLength(1);
});

test('a tab whose leader is gone goes on with the window that it has moved to, or was about to', async () => {
  vi.stubGlobal('SharedWorker', undefined);
  Reflect.deleteProperty(globalThis, 'SharedWorker');
  for (const late of [false, true]) {
    const [leader, one] = [await page(6), await page()];
    if (!late) {
      move(one, 2);
      for (let i = 0; i < 3; i++) await settle();
      expect(numbers(one.live)).toEqual([2, 3, 4]);
    }
    const seen = one.views.length;
    leader.tab.kill();
    if (late) move(one, 2);
    for (let i = 0; i < 200; i++) await settle();
    expect(numbers(one.live)).toEqual([2, 3, 4]);
    expect(one.live.view).toMatchObject({ moving: false, state: 'in_sync' });
    const shown = one.views.slice(seen).map(({ rows: [first] }) => first?.value.n);
    expect(new Set(shown)).toEqual(new Set(late ? [0, 2] : [2])); // it does not go back
    one.live.close();
    one.tab.kill();
    await pass(60_000);
  }
});

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ move: fc.nat(2), to: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ commit: fc.constantFrom('a', 'b', 'c', 'd'), n: fc.option(fc.nat(9), { nil: undefined }) }) },
  { weight: 2, arbitrary: fc.constant('settle' as const) },
  { weight: 1, arbitrary: fc.constant('cut' as const) },
  { weight: 1, arbitrary: fc.constantFrom<Fate>('rows late', 'answer late', 'answer lost', 'lost', 404, 429) },
);

const had = new Set<string>(); // also in earlier runs: what a hub follows again begins with what it had
test('each window of each tab is always one that the gateway had, and in the end that where it has moved', async () => {
  const asked = (offset: number) => new URLSearchParams({ 'order.w': 'n', 'limit.w': '3', 'offset.w': `${offset}` });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const pages = [await page(), await page(), await page(1)];
      const at = [0, 0, 1];
      const note = () => {
        for (let offset = 0; offset <= 5; offset++) had.add(JSON.stringify(gateway.window(asked(offset)).rows));
      };
      note();
      const seen = pages.map(({ views }) => views.length);
      for (const one of steps) {
        if (typeof one === 'number' || (typeof one === 'string' && one !== 'settle' && one !== 'cut')) gateway.fates.push(one);
        else if (one === 'settle') await settle();
        else if (one === 'cut') server.exchanges.findLast(({ open }) => open)?.end();
        else if ('to' in one) move(pages[one.move]!, (at[one.move] = one.to));
        else gateway.commit([[one.commit, one.n === undefined ? undefined : { n: one.n, v: 1 }]]);
        note();
        await pass(50);
      }
      gateway.fates.length = 0;
      for (let i = 0; i < 30; i++) {
        await pass(3_000);
        gateway.answer();
      }
      await settle();
      for (const [i, { live, views }] of pages.entries()) {
        for (const { rows } of views.slice(seen[i])) expect(had).toContain(JSON.stringify(rows));
        const { rows, total, before } = gateway.window(asked(at[i]!));
        expect(live.view.rows).toEqual(rows);
        expect(live.view).toMatchObject({ total, before, moving: false, state: 'in_sync' });
        live.close();
      }
      await settle();
    }),
    { numRuns: 25 },
  );
});
