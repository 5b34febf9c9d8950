import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type LiveCounts, watchCounts } from '../src/counts.js';
import { type Watches, watch } from '../src/index.js';
import { pool } from '../src/pool.js';
import { type Exchange, endOfSnapshot, hello, pass, remove, reset, Server, status, upsert } from './server.js';
import { open, server as shared, sharing } from './sharing.js';

interface Row {
  readonly s?: unknown;
  readonly n?: number;
}

interface Numbers {
  readonly count: number;
  readonly sum?: number;
  readonly min?: number;
  readonly max?: number;
}

/** The groups of some rows, by key: as the protocol has them, for values without arrays and objects. */
function groupsOf(rows: Iterable<Row>, by: string[], sum: string | null): Map<string, Numbers> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const values = by.map((name) => row[name as keyof Row] ?? null);
    const key = values.length > 1 ? JSON.stringify(values) : keyOf(values[0]);
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return new Map(
    [...groups].map(([key, rows]) => {
      const numbers = sum ? rows.map((row) => row[sum as keyof Row]).filter((one) => typeof one === 'number') : [];
      const sums = { sum: numbers.reduce((a, b) => a + b, 0), min: Math.min(...numbers), max: Math.max(...numbers) };
      return [key, { count: rows.length, ...(numbers.length > 0 && sums) }];
    }),
  );
}

function keyOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  try {
    JSON.parse(value);
    return JSON.stringify(value);
  } catch {
    return value || '""';
  }
}

/** A gateway with one watch, which answers each stream with the counts that it asks for. */
class Gateway {
  readonly state = new Map<string, Row>();
  #revision = 1;
  #streams: Array<{ readonly exchange: Exchange; shown: Map<string, Numbers> }> = [];

  constructor(private readonly server: Server) {}

  #groups(query: URLSearchParams): Map<string, Numbers> {
    return groupsOf(this.state.values(), query.get('by.w')!.split(','), query.get('sum.w'));
  }

  /** Answers new requests, and sends heartbeats. */
  answer(): void {
    for (const { exchange } of this.#streams) if (exchange.open) exchange.send(': heartbeat\n\n');
    for (const exchange of this.server.exchanges) {
      if (exchange.signal.aborted || exchange.open || this.#streams.some((one) => one.exchange === exchange)) continue;
      const shown = this.#groups(exchange.url.searchParams);
      const groups = [...shown].map(([key, value]) => upsert('w', key, this.#revision, value)).join('');
      const end = endOfSnapshot('w', this.#revision, shown.size, `w@c-${this.#revision}`);
      exchange.accept(hello(['w']) + reset('w', `w@c-0/${this.#revision}`) + groups + end);
      this.#streams.push({ exchange, shown });
    }
  }

  /** One transaction, of which each stream gets the groups that it changes. */
  commit(changes: ReadonlyArray<readonly [key: string, value: Row | undefined]>): void {
    this.#revision++;
    for (const [key, value] of changes) value ? this.state.set(key, value) : this.state.delete(key);
    for (const stream of this.#streams.filter(({ exchange }) => exchange.open)) {
      const now = this.#groups(stream.exchange.url.searchParams);
      const left = [...stream.shown.keys()].filter((key) => !now.has(key)).map((key) => remove('w', key, this.#revision));
      const set = [...now].filter(([key, value]) => JSON.stringify(stream.shown.get(key)) !== JSON.stringify(value));
      stream.shown = now;
      const events = [...left, ...set.map(([key, value]) => upsert('w', key, this.#revision, value))].join('');
      if (events) stream.exchange.send(`${events}id: w@c-${this.#revision}\n\n`);
    }
  }
}

const shownBy = ({ view: { groups } }: LiveCounts) =>
  Object.fromEntries([...groups].map(([key, { key: _, values: __, ...numbers }]) => [key, numbers]));

describe('counts', () => {
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

  test('have the groups, with sums, and how many resources there are', async () => {
    gateway.commit([
      ['a', { s: 'up', n: 1.5 }],
      ['b', { s: 'up', n: 2 }],
      ['c', { s: 'down' }],
    ]);
    const live = watchCounts(tide, { watch: 'w', by: 's', sum: 'n', prefix: 'x/', labels: 'app', filter: 'value.n > 1' });
    expect(live.view).toMatchObject({ state: 'connecting', total: 0, groups: new Map() });
    await settle();
    expect(server.last.url.search).toBe('?watch=w&prefix.w=x%2F&labels.w=app&filter.w=value.n+%3E+1&by.w=s&sum.w=n');
    expect(live.view).toMatchObject({ state: 'in_sync', total: 3 });
    expect([...live.view.groups.values()]).toEqual([
      { key: 'down', values: ['down'], count: 1 },
      { key: 'up', values: ['up'], count: 2, sum: 3.5, min: 1.5, max: 2 },
    ]);
    const [, up] = live.view.groups.values();
    const seen: string[] = [];
    live.subscribe(({ groups, total }, { keys }) => seen.push(`${[...keys].sort()} ${groups.size} ${total}`));
    gateway.commit([['c', { s: 'gone' }]]);
    await settle();
    expect(shownBy(live)).toEqual({ gone: { count: 1 }, up: { count: 2, sum: 3.5, min: 1.5, max: 2 } });
    expect(live.view.groups.get('up')).toBe(up);
    gateway.commit([['c', undefined]]);
    await settle();
    expect(seen).toEqual(['down,up 2 3', 'down,gone 2 3', 'gone 1 2']);
    live.close();
    await settle();
    expect(live.view.state).toBe('closed');
    expect(server.exchanges.some(({ open }) => open)).toBe(false);
    expect(() => live.subscribe(() => {})).toThrow('closed');
  });

  test.each([
    [
      's',
      ['up', '', '1', 'null', 'a b', 1, true, null, '"q"', '[]'],
      ['null', 'true', '1', '""', '"\\"q\\""', '"1"', '"[]"', 'a b', '"null"', 'up'],
    ],
    [
      ['s', 'n'],
      ['up', '1', null],
      ['[null,null]', '["1",null]', '["up",null]'],
    ],
  ])('have the values of the fields, in order, by %j', async (by, values, keys) => {
    gateway.commit(values.map((s, i) => [`k${i}`, s === null ? {} : { s }]));
    const live = watchCounts(tide, { watch: 'w', by });
    await settle();
    expect([...live.view.groups.keys()]).toEqual(keys);
    const found = [...live.view.groups.values()].map(({ values }) => values[0]);
    expect(new Set(found)).toEqual(new Set(values));
    for (const { values } of live.view.groups.values()) expect(values).toHaveLength(typeof by === 'string' ? 1 : 2);
    live.close();
  });

  test('of one field that holds arrays or objects have one value', async () => {
    const live = watchCounts(tide, { watch: 'w', by: 's' });
    await pass(50);
    const groups = ['[]', '{}', 'null'].map((key) => upsert('w', key, 1, { count: 1 })).join('');
    server.last.accept(hello(['w']) + reset('w', 'w@c-0/1') + groups + endOfSnapshot('w', 1, 3, 'w@c-1'));
    await pass(50);
    expect([...live.view.groups.values()].map(({ values }) => values)).toEqual([[null], [[]], [{}]]);
  });

  test('of a count that is declared are the resources of a watch', async () => {
    const live = watchCounts(tide, { watch: 'w' });
    await pass(50);
    expect(server.last.url).not.toContain('by');
    const groups = ['b', 'a'].map((key, i) => upsert('w', key, 1, { count: i + 1 })).join('');
    server.last.accept(hello(['w']) + reset('w', 'w@c-0/1') + groups + endOfSnapshot('w', 1, 2, 'w@c-1'));
    await pass(50);
    expect([[...live.view.groups.keys()], live.view.total]).toEqual([['a', 'b'], 3]);
    live.close();
  });

  test.each<[by: unknown]>([[''], [[]], [['']], [null]])('by no field (%j) are refused at once', async (by) => {
    expect(() => watchCounts(tide, { watch: 'w', by } as never)).toThrow(TypeError);
    expect(() => watchCounts(tide, { watch: 'w', by } as never)).toThrow(
      'by names no field: want one to four paths, or no by for a count that is declared',
    );
    await settle();
    expect(server.exchanges).toHaveLength(0);
    watchCounts(tide, { watch: 'w', by: undefined } as never).close(); // as if it were missing
  });

  test('that two parts of a page follow are followed until both have closed them, and longer if something else does', async () => {
    const [one, two] = [0, 1].map(() => watchCounts(tide, { watch: 'w', by: 's' }));
    await settle();
    expect(server.exchanges).toHaveLength(1);
    one!.close();
    gateway.commit([['a', { s: 'up' }]]);
    await settle();
    expect(two!.view.total).toBe(1);
    const { release } = pool(tide).use({ watch: 'w', by: 's' });
    two!.close();
    two!.close();
    await settle();
    expect(server.exchanges.filter(({ open }) => open)).toHaveLength(1);
    release();
    await pass(20_000);
    expect(server.exchanges.some(({ open }) => open)).toBe(false);
  });

  test('of a watch have a stream beside that of its resources, and one with those of other watches', async () => {
    tide.add('w');
    const live = watchCounts(tide, { watch: 'w', by: 's' });
    (tide as unknown as Watches).add('v');
    await pass(50);
    expect(server.exchanges.map(({ url }) => url.search)).toEqual(['?watch=w&watch=v', '?watch=w&by.w=s']);
    live.close();
  });

  test('are stale with too many groups, and closed if they are refused', async () => {
    const live = watchCounts(tide, { watch: 'w', by: 's' });
    await settle();
    server.last.send(status('w', 'stale', 'the field s has 2000 values: want at most 1000'));
    server.last.send('id: w@c-1\n\n');
    await pass(50);
    expect(live.view).toMatchObject({ state: 'stale', reason: 'the field s has 2000 values: want at most 1000' });
    const wrong = watchCounts(tide, { watch: 'w', by: 'a..b' });
    await pass(50);
    server.last.refuse(400, {}, { status: 400, title: 'Bad Request', detail: 'by.w, column 3: a name is missing', watch: 'w' });
    await pass(50);
    expect(wrong.view).toMatchObject({ state: 'closed', error: { message: 'by.w, column 3: a name is missing' } });
    wrong.close();
    const again = watchCounts(tide, { watch: 'w', by: 'a..b' });
    await pass(50);
    expect(again.view.state).toBe('connecting');
    again.close();
    live.close();
  });

  const row = fc.record({ s: fc.constantFrom('x', 'y', '1', 1, null), n: fc.integer({ min: -3, max: 3 }) }, { requiredKeys: [] });
  const changes = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.option(row, { nil: undefined })), {
    minLength: 1,
    maxLength: 4,
  });
  const step = fc.oneof(
    { weight: 4, arbitrary: changes.map((all) => ({ commit: all })) },
    { weight: 2, arbitrary: fc.constant({ settle: true }) },
    { weight: 1, arbitrary: fc.constant({ cut: true }) },
  );

  test('are always those of a state that the gateway had, and in the end those of the one that it has', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), fc.constantFrom('s', 's,n'), async (steps, by) => {
        const now = () => Object.fromEntries(groupsOf(gateway.state.values(), by.split(','), 'n'));
        const sorted = (groups: object) => JSON.stringify(Object.entries(groups).sort());
        const had = new Set([sorted({}), sorted(now())]);
        const live = watchCounts(tide, { watch: 'w', by, sum: 'n' });
        const end = live.subscribe(({ groups, total, state }) => {
          if (state === 'closed') return;
          expect(had).toContain(sorted(shownBy({ view: { groups } } as LiveCounts)));
          expect(total).toBe([...groups.values()].reduce((sum, { count }) => sum + count, 0));
        });
        for (const one of steps) {
          if ('commit' in one) gateway.commit(one.commit);
          else if ('cut' in one) server.exchanges.findLast(({ open }) => open)?.end();
          had.add(sorted(now()));
          await settle();
        }
        for (let i = 0; i < 10; i++) {
          await pass(5_000);
          gateway.answer();
        }
        await settle();
        expect(shownBy(live)).toEqual(now());
        expect(live.view).toMatchObject({ total: gateway.state.size, state: 'in_sync' });
        end();
        live.close();
        await pass(20_000);
      }),
      { numRuns: 60 },
    );
  });
});

describe('counts in tabs that share a connection', () => {
  sharing();

  test('are asked for once, and are not narrowed by prefixes', async () => {
    const tabs = [open([]), open([])];
    const lives = tabs.map(({ tab, tide }) => tab.run(() => watchCounts(tide, { watch: 'w', by: 's', prefix: 'x/' })));
    await pass(100);
    expect(shared.exchanges.map(({ url }) => url.search)).toEqual(['?watch=w&prefix.w=x%2F&by.w=s']);
    const groups = upsert('w', 'up', 5, { count: 2 }) + upsert('w', '9007199254740993', 5, { count: 1 });
    shared.last.accept(hello(['w']) + reset('w', 'w@c-0/5') + groups + endOfSnapshot('w', 5, 2, 'w@c-5'));
    await pass(100);
    for (const live of lives) {
      expect(live.view).toMatchObject({ state: 'in_sync', total: 3 });
      expect([...live.view.groups.keys()]).toEqual(['9007199254740993', 'up']);
    }
    shared.last.send(upsert('w', 'down', 6, { count: 1 }) + remove('w', 'up', 6, 'w@c-6'));
    await pass(100);
    for (const live of lives) expect([...live.view.groups.keys()]).toEqual(['9007199254740993', 'down']);
    const { tide } = open([]);
    const other = watchCounts(tide, { watch: 'w', by: 's', prefix: 'y/' });
    await pass(100);
    expect(shared.exchanges.map(({ url }) => url.search).slice(1)).toEqual(['?watch=w&prefix.w=y%2F&by.w=s']);
    other.close();
    for (const live of lives) live.close();
  });
});
