import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { eventSourceTransport, type View } from '../src/index.js';
import { autoRate } from '../src/rate.js';
import { watch } from '../src/watch.js';
import { FakeEventSource } from './fake_event_source.js';
import { following, url } from './following.js';
import { endOfSnapshot, hello, pass, reset, snapshot, upsert } from './server.js';

const f = following();

const rateOf = ({ url }: { url: URL }) => url.searchParams.get('max_rate');
const rates = () => f.server.exchanges.map(rateOf);
const resumed = (id = 'w@e-5') => hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, id, true);
const unknown = (parameter: string) => ({
  type: 'about:blank',
  title: 'Bad Request',
  status: 400,
  detail: `unknown parameter ${parameter}`,
  parameter,
});

describe('a rate', () => {
  test('is asked for, by each request, and said', async () => {
    const store = await f.follow({ maxRate: '2/s' });
    expect(store.view).toMatchObject({ state: 'in_sync', maxRate: '2/s' });
    f.server.last.end();
    await pass(10_000);
    f.server.last.accept(resumed());
    await pass();
    expect(rates()).toEqual(['2/s', '2/s']);
    expect(f.server.last.digests).toBe('digest=1&resume=digest');
    f.server.last.cut();
    await pass();
    expect(store.view).toMatchObject({ state: 'offline' });
    expect(store.view).not.toHaveProperty('maxRate');
  });

  test('is not asked for unless it is set', async () => {
    const store = await f.follow();
    expect(rates()).toEqual([null]);
    expect(store.view).not.toHaveProperty('maxRate');
  });

  test.each(['', 'auto', '0/s', '2', '2/h', '2.5/s', '-1/s', '2/s&watch=x', ' 2/s', '10000/s'])('%j is none', (maxRate) => {
    expect(() => watch(url, { maxRate })).toThrow(/want a rate, such as 2\/s or 10\/m$/);
  });

  test('is left out for an older gateway, and digests are as well', async () => {
    const store = await f.start({ maxRate: '2/s' });
    f.server.last.refuse(400, {}, unknown('max_rate'));
    await pass();
    expect([rateOf(f.server.last), f.server.last.digests]).toEqual([null, 'digest=1&resume=digest']);
    f.server.last.refuse(400, {}, unknown('digest'));
    await pass();
    expect([rateOf(f.server.last), f.server.last.digests]).toEqual([null, '']);
    f.server.last.accept(snapshot('w'));
    await pass();
    expect(store.state).toBe('in_sync');
    expect(store.view).not.toHaveProperty('maxRate');
    f.server.last.send(upsert('w', 'b', 6, 1, 'w@e-6'));
    await pass(60_000);
    expect(rates()).toEqual(['2/s', null, null, '2/s']); // the last one after silence
  });

  test('that the gateway refuses twice is a refusal', async () => {
    const store = await f.start({ maxRate: '2/s' });
    f.server.last.refuse(400, {}, unknown('max_rate'));
    await pass();
    f.server.last.refuse(400, {}, unknown('max_rate'));
    await pass();
    expect([store.state, f.server.exchanges.length]).toEqual(['closed', 2]);
  });

  test('is asked for with an EventSource too', async () => {
    vi.stubGlobal('EventSource', FakeEventSource);
    await f.start({ maxRate: '2/s', transport: eventSourceTransport });
    expect(FakeEventSource.last.url).toMatch(/\?watch=w&max_rate=2\/s$/);
  });
});

/** A page whose frames take so many ms each, while they are asked for, and one of some lateMs. */
class Page {
  frameMs = 16;
  lateMs = 80;
  lateOf = 0; // none is late
  #frames = 0;
  readonly views: View[] = [];
  #revision = 5;

  async open(): Promise<this> {
    const drawn = (run: () => void) => setTimeout(run, this.lateOf && ++this.#frames % this.lateOf === 0 ? this.lateMs : this.frameMs);
    vi.stubGlobal('requestAnimationFrame', drawn);
    vi.stubGlobal('cancelAnimationFrame', clearTimeout);
    const store = await f.follow({ maxRate: autoRate });
    store.subscribe((view) => this.views.push(view));
    return this;
  }

  get view(): View {
    return this.views.at(-1)!;
  }

  /** Lets time pass in which changes arrive each 100 ms, and new streams resume. */
  async live(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      await pass();
      this.answer();
      f.server.last.send(upsert('w', 'a', ++this.#revision, this.#revision, `w@e-${this.#revision}`));
      await pass(100);
    }
    this.answer();
    await pass();
  }

  answer(): void {
    const { last } = f.server;
    if (last.answered) return;
    expect(last.lastEventId).toBe(`w@e-${this.#revision}`);
    last.accept(resumed(`w@e-${this.#revision}`));
  }
}

const open = () => new Page().open();

describe('autoRate', () => {
  test('has no bound for a page with frames in time', async () => {
    const page = await open();
    await page.live(60_000);
    expect(rates()).toEqual([null]);
    expect(page.view).not.toHaveProperty('maxRate');
  });

  test('takes half of the rate when frames are late, down to one each five seconds, without a view that is not in sync', async () => {
    const page = await open();
    page.lateOf = 3;
    await page.live(60_000);
    expect(rates()).toEqual([null, '10/s', '5/s', '2/s', '1/s', '30/m', '12/m']);
    expect(page.view).toMatchObject({ state: 'in_sync', maxRate: '12/m' });
    expect(new Set(page.views.map(({ state }) => state))).toEqual(new Set(['in_sync']));
  });

  test('leaves out a rate when most frames are late', async () => {
    const page = await open();
    page.frameMs = 80;
    await page.live(16_000);
    expect(rates()).toEqual([null, '5/s', '1/s', '12/m']);
    await page.live(20_000);
    expect(page.view).toMatchObject({ state: 'in_sync', maxRate: '12/m' }); // there is no lower one
    expect(rates()).toHaveLength(4);
  });

  test.each([
    [2, '10/s'],
    [1, '5/s'],
  ])('one late frame of %i: %s comes next', async (lateOf, next) => {
    const page = await open();
    page.lateOf = lateOf;
    await page.live(4_000);
    expect(rates()).toEqual([null, next]);
  });

  test('leaves out a rate only on the way down', async () => {
    const page = await open();
    page.frameMs = 80;
    await page.live(9_000);
    expect(rates()).toEqual([null, '5/s', '1/s']);
    page.frameMs = 16;
    await page.live(60_000);
    expect(rates()).toEqual([null, '5/s', '1/s', '2/s', '5/s', '10/s', null]);
  });

  test('changes the rate every five seconds at most', async () => {
    const page = await open();
    page.lateOf = 3;
    await page.live(2_500);
    expect(rates()).toEqual([null, '10/s']);
    await page.live(4_000);
    expect(rates()).toEqual([null, '10/s']);
    await page.live(2_000);
    expect(rates()).toEqual([null, '10/s', '5/s']);
  });

  test('takes the higher rates again when frames are in time', async () => {
    const page = await open();
    page.lateOf = 3;
    await page.live(9_000);
    page.lateOf = 0;
    expect(rates()).toEqual([null, '10/s', '5/s']);
    await page.live(30_000);
    expect(rates()).toEqual([null, '10/s', '5/s', '10/s', null]);
    expect(page.view).not.toHaveProperty('maxRate');
  });

  test('tries the higher rate more and more rarely while it is too much', async () => {
    const page = await open();
    for (let i = 0; i < 3_000; i++) {
      page.lateOf = rateOf(f.server.last) === null ? 3 : 0; // it takes ten changes a second
      await page.live(100);
    }
    const tried = rates().filter((rate) => rate === null).length - 1;
    expect(tried).toBeGreaterThan(2);
    expect(tried).toBeLessThan(10); // in five minutes
  });

  test('late frames without changes change nothing', async () => {
    const page = await open();
    page.frameMs = 80;
    await pass(10_000);
    expect(rates()).toEqual([null]);
    expect(vi.getTimerCount()).toBe(1); // that of the stream: no frame is asked for
  });

  test('a single late frame, such as that of a page that was covered, changes nothing', async () => {
    const page = await open();
    for (let i = 0; i < 10; i++) {
      page.frameMs = i % 5 === 0 ? 400 : 16;
      await page.live(500);
      page.frameMs = 16;
      await page.live(1_500);
    }
    expect(rates()).toEqual([null]);
  });

  test('a hidden tab has a low rate after five seconds, and the one before when it is shown', async () => {
    const page = await open();
    f.visibility(true);
    await page.live(4_900);
    expect(rates()).toEqual([null]);
    await page.live(200);
    expect(page.view).toMatchObject({ state: 'in_sync', maxRate: '12/m' });
    await page.live(60_000);
    f.visibility(false);
    await page.live(100);
    expect(rates()).toEqual([null, '12/m', null]);
    expect(page.views.every(({ state }) => state === 'in_sync')).toBe(true);
    expect(page.view).not.toHaveProperty('maxRate');
  });

  test('a tab that is hidden for a moment keeps its rate', async () => {
    const page = await open();
    f.visibility(true);
    await page.live(4_000);
    f.visibility(false);
    await page.live(20_000);
    expect(rates()).toEqual([null]);
  });

  test('a tab that is opened hidden begins with the low rate', async () => {
    f.visibility(true);
    await open();
    expect(rates()).toEqual(['12/m']);
  });

  test('the stream is not replaced before it has caught up', async () => {
    await f.start({ maxRate: autoRate });
    f.server.last.accept(hello(['w']) + reset('w', 'w@e-0/1'));
    f.visibility(true);
    await pass(6_000);
    expect(rates()).toEqual([null]);
    f.server.last.send(upsert('w', 'a', 5, 1) + endOfSnapshot('w', 5, 1, 'w@e-5'));
    await pass();
    expect(rates()).toEqual([null, '12/m']);
    expect(f.server.last.lastEventId).toBe('w@e-5');
  });

  test('an older gateway is not asked for each rate', async () => {
    f.visibility(true);
    await f.start({ maxRate: autoRate });
    f.server.last.refuse(400, {}, unknown('max_rate'));
    await pass();
    f.server.last.accept(snapshot('w'));
    await pass();
    f.visibility(false);
    await pass(10_000);
    f.visibility(true);
    await pass(10_000);
    expect(rates()).toEqual(['12/m', null]);
  });

  test('where there is no page, there is no bound', async () => {
    vi.stubGlobal('document', undefined);
    await f.follow({ maxRate: autoRate });
    f.server.last.send(upsert('w', 'b', 6, 1, 'w@e-6'));
    await pass(1_000);
    expect(rates()).toEqual([null]);
  });

  test('whatever happens, rates change every five seconds at most, and the page is in sync', async () => {
    const step = fc.record({
      hidden: fc.boolean(),
      frameMs: fc.constantFrom(8, 16, 60, 300),
      lateOf: fc.constantFrom(0, 3),
      ms: fc.integer({ min: 1, max: 80 }),
    });
    await fc.assert(
      fc
        .asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
          const page = await open();
          const asked: number[] = [];
          let seen = f.server.exchanges.length;
          for (const { hidden, ms, ...frames } of steps) {
            f.visibility(hidden);
            Object.assign(page, frames);
            for (let i = 0; i < ms; i++) {
              await page.live(100);
              if (f.server.exchanges.length > seen) asked.push(performance.now());
              expect(f.server.exchanges.length - seen).toBeLessThanOrEqual(1);
              seen = f.server.exchanges.length;
            }
          }
          const gaps = asked.slice(1).map((at, i) => at - asked[i]!);
          expect(Math.min(...gaps, Infinity)).toBeGreaterThanOrEqual(4_900);
          expect(page.views.every(({ state }) => state === 'in_sync')).toBe(true);
        })
        .beforeEach(() => f.begin())
        .afterEach(() => f.end()),
      { numRuns: 30 },
    );
    f.begin(); // for the end of the test
  });
});
