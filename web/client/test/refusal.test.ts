import { describe, expect, test } from 'vitest';
import { RefusedError } from '../src/errors.js';
import { watch } from '../src/watch.js';
import { following, url } from './following.js';
import { endOfSnapshot, goodbye, hello, pass } from './server.js';

const f = following();

describe('a refusal', () => {
  test.each([400, 401, 403, 404, 406, 414])('%i is final', async (code) => {
    await f.start();
    f.server.last.refuse(code);
    await pass(600_000);
    expect(f.server.exchanges).toHaveLength(1);
    const { state, error, reason } = f.tide.store('w').view;
    expect([state, reason]).toEqual(['closed', `refused with ${code}`]);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ status: code, problem: { detail: `refused with ${code}` } });
  });

  test.each([408, 500, 502, 504])('%i is not', async (code) => {
    await f.start();
    f.server.last.refuse(code);
    await pass(1_000);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test.each([401, 404])('of one watch with %i leaves the others', async (status) => {
    f.tide = watch(url, { watches: ['w', 'gone'] });
    const gone = f.tide.store('gone');
    await pass();
    f.server.last.refuse(status, {}, { status, title: 'Refused', detail: 'there is no watch "gone"', watch: 'gone' });
    await pass();
    expect(gone.view).toMatchObject({ state: 'closed', reason: 'there is no watch "gone"' });
    expect(f.server.last.watches).toEqual(['w']);
    expect(() => f.tide.store('gone')).toThrow('the watch gone is not followed');
  });

  test('of a watch that was added does not affect the others', async () => {
    const store = await f.follow();
    const states: string[] = [];
    store.subscribe(({ state }) => states.push(state));
    f.tide.add('gone');
    await pass(50);
    f.server.last.refuse(404, {}, { status: 404, title: 'Not Found', detail: 'there is no watch "gone"', watch: 'gone' });
    await pass();
    f.server.last.accept(hello(['w'], 'resume'));
    await pass();
    f.server.last.send(endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass();
    expect([f.server.exchanges.length, states]).toEqual([3, ['in_sync']]);
  });

  test('of a watch without a name leaves the others', async () => {
    const store = await f.follow();
    const nameless = f.tide.add('');
    await pass(50);
    f.server.last.refuse(404, {}, { status: 404, title: 'Not Found', detail: 'there is no watch ""' });
    await pass();
    expect(nameless.view).toMatchObject({ state: 'closed', reason: 'there is no watch ""' });
    f.server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
    await pass(20_000);
    expect(store.state).toBe('in_sync');
  });

  test.each([
    [429, '20', 20_000],
    [503, '20', 20_000],
    [503, new Date(1_030_000).toUTCString(), 30_000],
  ])('after %i with Retry-After: %s', async (code, after, ms) => {
    f.tide = watch(url, { watches: ['w'] });
    await pass();
    f.server.last.refuse(code, { 'Retry-After': after });
    await pass();
    expect(f.tide.store('w').view).toMatchObject({ state: 'connecting', reason: `refused with ${code}` });
    f.happens('online');
    await pass(ms - 1);
    expect(f.server.exchanges).toHaveLength(1);
    await pass(1);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('what the server says about one view too many is the reason', async () => {
    const many = { watch: 'v', filter: 'value.n > 1' };
    f.tide = watch(url, { watches: ['w', many] });
    await pass();
    const detail = 'there are 10 views, of 10 at most: come back later';
    f.server.last.refuse(
      503,
      { 'Retry-After': '5' },
      { status: 503, title: 'Service Unavailable', detail, watch: 'v', parameter: 'filter.v' },
    );
    await pass();
    expect([f.tide.store('w').view, f.tide.store(many).view]).toMatchObject([
      { state: 'connecting', reason: detail },
      { state: 'connecting', reason: detail },
    ]);
  });

  test('a date in Retry-After is one of the server, whose clock may differ from that of the page', async () => {
    await f.start();
    const [date, after] = [500_000_000, 500_020_000].map((ms) => new Date(ms).toUTCString());
    f.server.last.refuse(503, { 'Retry-After': after!, Date: date! });
    await pass(19_999);
    expect(f.server.exchanges).toHaveLength(1);
    await pass(1);
    expect(f.server.exchanges).toHaveLength(2);
  });

  test('a request to an overloaded server is repeated after the time in Retry-After', async () => {
    await f.start();
    f.server.last.accept(`retry: 1500\n\n: too many\n\n${goodbye('overloaded', 9_000)}`).end();
    await pass();
    expect(f.tide.store('w').view).toMatchObject({ state: 'connecting', reason: 'the server said goodbye: overloaded' });
    await pass(8_999);
    expect(f.server.exchanges).toHaveLength(1);
    await pass(1);
    expect(f.server.exchanges).toHaveLength(2);
  });
});
