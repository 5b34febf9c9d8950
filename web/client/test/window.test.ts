import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Resource, type Watches, watch } from '../src/index.js';
import { pool } from '../src/pool.js';
import { compareBy, type LiveWindow, watchWindow } from '../src/window.js';
import { pass, Server } from './server.js';
import { type Fate, Gateway, type Row } from './window_gateway.js';

const vectors = JSON.parse(readFileSync(new URL('../../../internal/order/testdata/values.json', import.meta.url), 'utf8')) as string[][];

const resource = (key: string, value: unknown): Resource => ({ key, revision: '1', value });

describe('the order', () => {
  test.each([1, -1])('is that of the gateway (%i)', (direction) => {
    const compare = compareBy(direction > 0 ? 'v' : '-v');
    const all = vectors.map((line) => line.map((text) => JSON.parse(text) as unknown));
    all.forEach((line, i) => {
      for (const v of line) {
        expect(compare(resource('a', { v }), resource('a', { v: line[0] }))).toBe(0);
        const before = all[i - 1]?.[0];
        if (i > 0 && before !== v) expect(Math.sign(compare(resource('a', { v: before }), resource('a', { v })))).toBe(-direction); // else the digits are lost
        expect(compare(resource('a', { v }), resource('a', {}))).toBeLessThan(0);
        expect(compare(resource('a', {}), resource('a', { v }))).toBeGreaterThan(0);
      }
    });
  });

  test.each([
    ['a,b', { a: 1, b: 2 }, { a: 1, b: 3 }],
    ['-a,b', { a: 2, b: 9 }, { a: 1, b: 1 }],
    ['a.b', { a: { b: 1 } }, { a: { b: 2 } }],
    ['"a.b"', { 'a.b': 1 }, { 'a.b': 2 }],
    ['"-a"', { '-a': 1 }, { '-a': 2 }],
    ['"x,y".z', { 'x,y': { z: 1 } }, { 'x,y': { z: 2 } }],
    ['-"-a"', { '-a': 2 }, { '-a': 1 }],
    [['-a', 'b'], { a: 2 }, { a: 1 }],
    ['n', { n: 9007199254740992n }, { n: 9007199254740993n }],
    ['n', { n: 1 }, { n: 2n }],
    ['a.0', {}, {}],
  ])('%j', (order, first, second) => {
    const compare = compareBy(order);
    expect(compare(resource('z', first), resource('a', second))).toBeLessThan(order === 'a.0' ? 99 : 0);
    expect(compare(resource('a', first), resource('b', first))).toBeLessThan(0);
  });

  test.each([
    [' -a , b . c ', { a: 1, b: { c: 1 } }, { a: 1, b: { c: 2 } }],
    ['- "a"', { a: 2 }, { a: 1 }],
    ['"a:asc"', { 'a:asc': 1 }, { 'a:asc': 2 }],
    ['a:b', { 'a:b': 1 }, { 'a:b': 2 }],
    ['"+a"', { '+a': 1 }, { '+a': 2 }],
    ['a-b+c', { 'a-b+c': 1 }, { 'a-b+c': 2 }],
    ['"".é', { '': { é: 1 } }, { '': { é: 2 } }],
    ['"\\u0061\\"".-c', { 'a"': { '-c': 1 } }, { 'a"': { '-c': 2 } }],
    ['a,-a.b', { a: 1 }, { a: 2 }],
  ])('%s is one', (order, first, second) => {
    expect(compareBy(order)(resource('z', first), resource('a', second))).toBeLessThan(0);
  });

  test.each<[order: string | string[], column: number, problem: string]>([
    ['', 1, 'a name is missing at the end'],
    [[], 1, 'a name is missing at the end'],
    ['cpu,', 5, 'a name is missing at the end'],
    ['-', 2, 'a name is missing at the end'],
    [['cpu', ''], 5, 'a name is missing at the end'],
    [',cpu', 1, 'a name is missing before ,'],
    ['a,,b', 3, 'a name is missing before ,'],
    ['a..b', 3, 'a name is missing before .'],
    ['.a', 1, 'a name is missing before .'],
    ['a.', 3, 'a name is missing at the end'],
    ['"a"x', 4, 'unexpected x'],
    ['a b', 3, 'unexpected b'],
    ['世,"世"🌊', 6, 'unexpected 🌊'],
    ['a[0]', 2, 'unexpected ['],
    ["'a'", 1, "unexpected '"],
    ['a\tb', 2, 'unexpected \t'],
    ['"a', 1, 'want a name in double quotes, as in JSON'],
    ['"\\x"', 1, 'want a name in double quotes, as in JSON'],
    ['"a\n"', 1, 'want a name in double quotes, as in JSON'],
    ['--cpu', 2, 'a second -: want a minus before the path where the order descends, and nothing where it ascends'],
    ['a,- -cpu', 5, 'a second -: want a minus before the path where the order descends, and nothing where it ascends'],
    ['-+cpu', 2, 'unexpected +: want a minus before the path where the order descends, and nothing where it ascends'],
    ['a, +cpu', 4, 'unexpected +: want a minus before the path where the order descends, and nothing where it ascends'],
    ['a.b,c,-"a".b', 7, 'the path a.b is there twice'],
    ['a,"a"', 3, 'the path a is there twice'],
    ['-cpu:desc', 5, 'unexpected :desc: want a minus before the path where the order descends, and nothing where it ascends'],
    ['a, b.cpu:asc ,c', 9, 'unexpected :asc: want a minus before the path where the order descends, and nothing where it ascends'],
    ['cpu desc', 5, 'unexpected desc: want a minus before the path where the order descends, and nothing where it ascends'],
    ['cpu ASC,a', 5, 'unexpected ASC: want a minus before the path where the order descends, and nothing where it ascends'],
  ])('%j is none', (order, column, problem) => {
    expect(() => compareBy(order)).toThrow(TypeError);
    expect(() => compareBy(order)).toThrow(`order ${JSON.stringify(String(order))}, column ${column}: ${problem}`);
  });

  test('equal resources come in the order of the bytes of their keys', () => {
    const keys: Resource[] = [
      { key: '/w==', key_encoding: 'base64', revision: '1', value: 0 },
      { key: '🌊', revision: '1', value: 0 },
      { key: '\uffe0', revision: '1', value: 0 },
      { key: 'a', revision: '1', value: 0 },
    ];
    expect(keys.sort(compareBy('v')).map(({ key }) => key)).toEqual(['a', '\uffe0', '🌊', '/w==']);
  });
});

describe('a window', () => {
  let server: Server;
  let tide: Watches<{ w: Row }>;
  let gateway: Gateway;

  beforeEach(() => {
    vi.useFakeTimers();
    server = new Server();
    tide = watch('http://gateway.test');
    gateway = new Gateway(server);
  });

  afterEach(() => {
    tide.close();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  const settle = async () => {
    await pass(50);
    gateway.answer();
    await pass(50);
  };
  const fill = (...numbers: number[]) => gateway.commit(numbers.map((n, i) => [`k${i}`, { n, v: 0 }]));
  const numbers = ({ view }: LiveWindow<Row>) => view.rows.map(({ value }) => value.n);

  test('has its rows in order, and says how many there are', async () => {
    fill(5, 3, 9, 1);
    const live = watchWindow(tide, { watch: 'w', order: '-n', limit: 2, offset: 1 });
    expect(live.view).toMatchObject({ state: 'connecting', rows: [], total: 0, moving: false });
    await settle();
    expect(server.last.url.search).toBe('?watch=w&order.w=-n&limit.w=2&offset.w=1');
    expect(numbers(live)).toEqual([5, 3]);
    expect(live.view).toMatchObject({ state: 'in_sync', total: 4, before: 1, next: 'k1' });
    const [, kept] = live.view.rows;
    gateway.commit([['k3', { n: 7, v: 0 }]]);
    await settle();
    expect(numbers(live)).toEqual([7, 5]);
    gateway.commit([
      ['k0', { n: 5, v: 1 }],
      ['k3', undefined],
    ]);
    await settle();
    expect(numbers(live)).toEqual([5, 3]);
    expect(live.view.total).toBe(3);
    expect(live.view.rows[1]).toEqual(kept);
  });

  test('is told of another total, although its rows are the same', async () => {
    fill(1, 2, 3);
    const live = watchWindow(tide, { watch: 'w', order: 'n', limit: 2 });
    await settle();
    const { rows } = live.view;
    gateway.commit([['x', { n: 9, v: 0 }]]);
    await settle();
    expect(live.view.total).toBe(4);
    expect(live.view.rows).toBe(rows);
  });

  test('shows what it had until it has moved, and keeps the objects of rows', async () => {
    fill(1, 2, 3, 4, 5);
    const live = watchWindow(tide, { watch: 'w', order: 'n', limit: 3 });
    await settle();
    const third = live.view.rows[2];
    live.move({ offset: 2 });
    await pass(50);
    expect(live.view).toMatchObject({ moving: true, before: 0 });
    expect(numbers(live)).toEqual([1, 2, 3]);
    await settle();
    expect(live.view).toMatchObject({ moving: false, before: 2, state: 'in_sync' });
    expect(numbers(live)).toEqual([3, 4, 5]);
    expect(live.view.rows[0]).toBe(third);
    await settle();
    expect(server.exchanges.filter(({ open }) => open).length).toBe(1);
    live.move({ after: 'k0' });
    live.move({ offset: 2 }); // back, before that has begun
    expect(live.view.moving).toBe(false);
    live.close();
    expect(live.view.state).toBe('closed');
    await settle();
    expect(server.exchanges.some(({ open }) => open)).toBe(false);
  });

  test('that two parts of a page share is followed until both have closed it', async () => {
    fill(1, 2);
    const [one, two] = [0, 1].map(() => watchWindow(tide, { watch: 'w', order: 'n', limit: 1 }));
    await settle();
    expect(server.exchanges.length).toBe(1);
    one!.close();
    gateway.commit([['k0', { n: 0, v: 0 }]]);
    await settle();
    expect(numbers(two!)).toEqual([0]);
    two!.close();
  });

  test.each(['before', 'after'])('whose definition the page has added itself, %s it, stays followed when it is closed', async (when) => {
    fill(1, 2);
    const spec = { watch: 'w', order: 'n', limit: 1 } as const;
    if (when === 'before') tide.add(spec);
    const live = watchWindow(tide, spec);
    if (when === 'after') tide.add(spec);
    await settle();
    live.close();
    await settle();
    expect(tide.store(spec).state).toBe('in_sync');
    tide.remove(spec);
    await settle();
    expect(server.exchanges.some(({ open }) => open)).toBe(false);
  });

  test('and a pool with the same definition keep each other followed', async () => {
    fill(1, 2);
    const spec = { watch: 'w', order: 'n', limit: 1 } as const;
    const stores = pool(tide, { maxLingering: 0 });
    const one = stores.use(spec);
    const [live, last] = [0, 1].map(() => watchWindow(tide, spec));
    await settle();
    live!.close();
    await settle();
    expect(one.store.state).toBe('in_sync');
    one.release();
    await settle();
    expect(last!.view.state).toBe('in_sync');
    last!.close();
    await settle();
    expect(server.exchanges.some(({ open }) => open)).toBe(false);
  });

  test('that has moved leaves what the page has added itself', async () => {
    fill(1, 2, 3);
    const spec = { watch: 'w', order: 'n', limit: 1 } as const;
    tide.add(spec);
    const live = watchWindow(tide, spec);
    await settle();
    live.move({ offset: 1 });
    await settle();
    await settle();
    expect(numbers(live)).toEqual([2]);
    expect(tide.store(spec).state).toBe('in_sync');
    live.close();
    await settle();
    expect(tide.store(spec).state).toBe('in_sync');
  });

  test('shows a refusal', async () => {
    const live = watchWindow(tide, { watch: 'w', order: 'n', limit: 500 });
    await pass(50);
    server.last.refuse(400, {}, { status: 400, title: 'Bad Request', detail: 'limit is 500: want 1 to 100' });
    await pass(50);
    expect(live.view.state).toBe('closed');
    expect(live.view.error?.message).toContain('limit is 500');
  });

  const wrong: Array<[definition: Record<string, unknown>, message: string]> = [
    [{ order: undefined }, 'a window has an order: want paths, such as -cpu_percent,name'],
    [{ order: '' }, 'a window has an order'],
    [{ order: [] }, 'a window has an order'],
    [{ order: 'n,' }, 'order "n,", column 3: a name is missing at the end'],
    [{ limit: undefined }, 'limit is undefined: want a whole number from 1 to 1000'],
    ...[0, -1, 1.5, 1001, Number.NaN].map((limit): [object, string] => [
      { limit },
      `limit is ${limit}: want a whole number from 1 to 1000`,
    ]),
    ...[-1, 0.5, Number.NaN, 2 ** 31 + 1].map((offset): [object, string] => [
      { offset },
      `offset is ${offset}: want a whole number from 0 to 2147483648`,
    ]),
  ] as never;
  test.each(wrong)('that is %j is refused at once', async (definition, message) => {
    const options = { watch: 'w', order: 'n', limit: 2 } as const;
    expect(() => watchWindow(tide, { ...options, ...definition } as never)).toThrow(TypeError);
    expect(() => watchWindow(tide, { ...options, ...definition } as never)).toThrow(message);
    await settle();
    expect(server.exchanges.length).toBe(0);

    fill(1, 2, 3);
    const live = watchWindow(tide, options);
    await settle();
    expect(() => live.move({ offset: 1, ...definition } as never)).toThrow(message);
    await settle();
    expect(numbers(live)).toEqual([1, 2]);
    expect(live.view).toMatchObject({ state: 'in_sync', moving: false });
    live.move({ offset: 1 });
    await settle();
    expect(numbers(live)).toEqual([2, 3]);
  });

  const row = fc.record({ n: fc.oneof(fc.nat(9), fc.constantFrom('a', 'b')), v: fc.nat(2) }, { requiredKeys: ['v'] });
  const changes = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), fc.option(row, { nil: undefined })), {
    minLength: 1,
    maxLength: 5,
  });
  const step = fc.oneof(
    { weight: 4, arbitrary: changes.map((all) => ({ commit: all })) },
    { weight: 2, arbitrary: fc.record({ offset: fc.nat(5), limit: fc.integer({ min: 1, max: 4 }) }).map((move) => ({ move })) },
    { weight: 1, arbitrary: fc.constantFrom('n', '-n', '-v,n').map((order) => ({ move: { order } })) },
    { weight: 2, arbitrary: fc.constant({ settle: true }) },
    { weight: 1, arbitrary: fc.constant({ cut: true }) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom<Fate>('rows late', 'answer late', 'answer lost', 'lost', 401, 403, 404, 429, 503)
        .map((fate) => ({ fate })),
    },
  );

  const had = new Set<string>(); // also by earlier windows: a store that is added again begins with what it had
  test('is always a window that the gateway had, and in the end the one that it has', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const live = watchWindow(tide, { watch: 'w', order: 'n', limit: 3 });
        let options = { order: 'n', limit: 3, offset: 0 };
        const asked = [options];
        const note = () => {
          for (const { order, limit, offset } of asked) {
            const { rows } = gateway.window(new URLSearchParams({ 'order.w': order, 'limit.w': `${limit}`, 'offset.w': `${offset}` }));
            had.add(JSON.stringify(rows));
          }
        };
        const unsubscribe = live.subscribe(({ rows, state }) => {
          if (rows.length > 0 && state !== 'closed')
            expect(had).toContain(JSON.stringify(rows.map(({ key, revision, value }) => ({ key, revision, value }))));
        });
        note();
        for (const one of steps) {
          if ('commit' in one) gateway.commit(one.commit);
          else if ('fate' in one) gateway.fates.push(one.fate);
          else if ('move' in one) {
            options = { ...options, offset: 0, ...one.move };
            asked.push(options);
            note();
            live.move(one.move);
          } else if ('cut' in one) {
            const last = server.exchanges.findLast(({ open }) => open);
            last?.end();
            await settle();
          } else await settle();
          note();
          await pass(50);
        }
        gateway.fates.length = 0;
        for (let i = 0; i < 20; i++) {
          await pass(5_000);
          gateway.answer();
        }
        await settle();
        const { rows, total, before } = gateway.window(
          new URLSearchParams({ 'order.w': options.order, 'limit.w': `${options.limit}`, 'offset.w': `${options.offset}` }),
        );
        expect(live.view.rows).toEqual(rows);
        expect(live.view).toMatchObject({ total, before, moving: false, state: 'in_sync' });
        unsubscribe();
        live.close();
        await settle();
      }),
      { numRuns: 60 },
    );
  });
});
