import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import { SharedWatch } from '../src/shared_watch.js';
import { endOfSnapshot, hello, pass, remove, reset, upsert } from './server.js';
import { open, primed, resume, server, sharing, shown, told } from './sharing.js';

sharing();

describe('prefixes', () => {
  const rows = (...keys: string[]) => keys.map((key) => upsert('w', key, 5, 1)).join('');

  test('of one watch may differ from tab to tab', async () => {
    const inX = { watch: 'w', prefix: 'home/x/' };
    const inY = { watch: 'w', prefix: 'home/y/' };
    const { tide: x } = open([inX]);
    await pass();
    expect(server.last.url.searchParams.get('prefix.w')).toBe('home/x/');
    server.last.accept(hello(['w']) + reset('w', 'w@x-0/5') + rows('home/x/1') + endOfSnapshot('w', 5, 1, 'w@x-5'));
    await pass();
    const { tide: y } = open([inY]);
    await pass(50);
    expect(server.last.url.searchParams.get('prefix.w')).toBe('home/');
    expect(shown(x, inX)).toBe('stale home/x/1=1');
    server.last.accept(hello(['w']) + reset('w', 'w@h-0/5') + rows('home/x/1', 'home/y/1', 'home/z') + endOfSnapshot('w', 5, 3, 'w@h-5'));
    await pass();
    expect([shown(x, inX), shown(y, inY)]).toEqual(['in_sync home/x/1=1', 'in_sync home/y/1=1']);
    const changes = told(x, inX);
    server.last.send(upsert('w', 'home/y/1', 6, 2) + remove('w', 'home/z', 6, 'w@h-6'));
    await pass();
    expect([shown(x, inX), shown(y, inY)]).toEqual(['in_sync home/x/1=1', 'in_sync home/y/1=2']);
    expect(changes).toEqual(['in_sync ']); // another revision
    const { tide: z } = open([{ watch: 'w', prefix: 'home/x/1' }]);
    await pass(100);
    expect(shown(z, { watch: 'w', prefix: 'home/x/1' })).toBe('in_sync home/x/1=1');
    expect(server.exchanges).toHaveLength(2);
  });

  test('are compared by bytes', async () => {
    open(['w']);
    await pass();
    const bytes = (text: string) => upsert('w', btoa(text), 5, 1).replace('"revision"', '"key_encoding":"base64","revision"');
    server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + bytes('\xc3\xbc\xff') + bytes('z\xff') + endOfSnapshot('w', 5, 2, 'w@e-5'));
    await pass();
    const { tide } = open([{ watch: 'w', prefix: 'ü' }]);
    await pass();
    expect([...tide.store({ watch: 'w', prefix: 'ü' }).resources.values()].map(({ key }) => atob(key))).toEqual(['\xc3\xbc\xff']);
  });

  test('that share only half a character have nothing in common', async () => {
    open([{ watch: 'w', prefix: '🌊' }]);
    open([{ watch: 'w', prefix: '🌍' }]);
    await pass(100);
    expect(server.last.url.searchParams.get('prefix.w')).toBeNull();
  });
});

describe('definitions', () => {
  const high = { watch: 'w', filter: 'value > 1' };
  const low = { watch: 'w', filter: 'value < 2' };
  const requests = () => server.exchanges.filter(({ open }) => open).map(({ url }) => url.searchParams.get('filter.w'));

  /** Answers the last request with a snapshot in an epoch of its own. */
  async function answer(epoch: string, key: string, value: number): Promise<void> {
    server.last.accept(hello(['w']) + reset('w', `w@${epoch}-0/5`) + upsert('w', key, 5, value) + endOfSnapshot('w', 5, 1, `w@${epoch}-5`));
    await pass();
  }

  test('of one watch have a connection each, which tabs with the same definition share', async () => {
    const { tide } = open([high]);
    await pass();
    await answer('h', 'a', 2);
    const { tide: other } = open([low]);
    await pass(100);
    await answer('l', 'b', 1);
    expect(requests()).toEqual(['value > 1', 'value < 2']);
    expect([shown(tide, high), shown(other, low)]).toEqual(['in_sync a=2', 'in_sync b=1']);
    const { tide: both } = open([low, { ...high }]);
    await pass(100);
    expect([shown(both, high), shown(both, low)]).toEqual(['in_sync a=2', 'in_sync b=1']);
    server.exchanges[0]!.send(upsert('w', 'c', 6, 3, 'w@h-6'));
    await pass();
    expect([shown(tide, high), shown(both, high), shown(both, low)]).toEqual(['in_sync a=2,c=3', 'in_sync a=2,c=3', 'in_sync b=1']);
    expect(server.exchanges).toHaveLength(2);
  });

  test('with the same filter share the common prefix', async () => {
    const { tide } = open([{ ...high, prefix: 'home/x/' }]);
    const { tide: other } = open([{ ...high, prefix: 'home/y/' }]);
    await pass(100);
    expect(server.last.url.searchParams.get('prefix.w')).toBe('home/');
    expect(server.last.url.searchParams.get('filter.w')).toBe('value > 1');
    await answer('h', 'home/x/1', 2);
    expect([shown(tide, { ...high, prefix: 'home/x/' }), shown(other, { ...high, prefix: 'home/y/' })]).toEqual([
      'in_sync home/x/1=2',
      'in_sync ',
    ]);
    expect(requests()).toHaveLength(1);
  });

  test('that the gateway refuses are refused alone, with its text', async () => {
    const { tide } = await primed();
    const { tide: wrong } = open([{ watch: 'v', filter: 'value = 1' }, 'w']);
    const refused = wrong.store({ watch: 'v', filter: 'value = 1' });
    await pass(100);
    const detail = 'filter, column 7: = is no operator: did you mean ==?';
    server.last.refuse(400, {}, { status: 400, title: 'Bad Request', detail, watch: 'v', parameter: 'filter.v' });
    await pass();
    await resume();
    await pass(1_000);
    expect(refused.view).toMatchObject({ state: 'closed', reason: detail, error: { status: 400, problem: { detail } } });
    expect([shown(tide), shown(wrong)]).toEqual(['in_sync a=1', 'in_sync a=1']);
    const right = wrong.add({ watch: 'v', filter: 'value == 1' });
    await pass(100);
    server.last.accept(
      hello(['w'], 'resume') +
        endOfSnapshot('w', 5, 1, 'w@e-5', true) +
        reset('v', 'w@e-5,v@e-0/1') +
        endOfSnapshot('v', 1, 0, 'w@e-5,v@e-1'),
    );
    await pass(100);
    expect(right.state).toBe('in_sync');
  });

  test('of a tab that changes its mind begin with a snapshot', async () => {
    const { tide } = open([high]);
    await pass();
    await answer('h', 'a', 2);
    const store = tide.store(high);
    tide.remove(high);
    tide.add(low);
    await pass(100);
    expect(server.last.lastEventId).toBe('w@h-5'); // the gateway answers it with a reset
    await answer('l', 'b', 1);
    expect([shown(tide, low), store.state]).toEqual(['in_sync b=1', 'closed']);
    expect(() => tide.store(high)).toThrow('the watch w is not followed');
  });
});

test('parts that no tab follows any more are forgotten if there are many', async () => {
  const known: Array<WeakRef<SharedWatch>> = [];
  const { subscribe } = SharedWatch.prototype;
  const spy = vi.spyOn(SharedWatch.prototype, 'subscribe').mockImplementation(function (this: SharedWatch, ...args) {
    if (!known.some((one) => one.deref() === this)) known.push(new WeakRef(this));
    return subscribe.apply(this, args);
  });
  const { tide } = open([]);
  const part = (i: number) => ({ watch: 'w', filter: `value > ${i}` });
  for (let i = 0; i < 80; i++) {
    tide.add(part(i));
    await pass(200);
    if (i < 79) tide.remove(part(i));
  }
  server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 5, 99) + endOfSnapshot('w', 5, 1, 'w@e-5'));
  await pass(200);
  expect(shown(tide, part(79))).toBe('in_sync a=99');
  spy.mockClear();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(known).toHaveLength(80);
  expect(known.filter((one) => one.deref()).length).toBeLessThanOrEqual(50);
});

describe('keys that no tab wants any more', () => {
  const prefix = (text: string) => ({ watch: 'w', prefix: text });
  const asked = () => server.exchanges.map(({ url }) => url.searchParams.get('prefix.w'));
  const accept = (id: string, ...keys: string[]) => {
    const rows = keys.map((key) => upsert('w', key, 5, 1)).join('');
    server.last.accept(hello(['w']) + reset('w', `w@${id}-0/5`) + rows + endOfSnapshot('w', 5, keys.length, `w@${id}-5`));
    return pass(100);
  };

  async function wide() {
    const wide = open([prefix('home/')]);
    await pass();
    await accept('wide', 'home/x', 'home/y/1', 'home/y/2');
    const narrow = open([prefix('home/y/')]);
    await pass(100);
    return { wide, narrow };
  }

  test('are followed for half a minute, and then no longer', async () => {
    const { wide: left, narrow } = await wide();
    left.tide.close();
    await pass(29_000);
    server.last.send(': \n\n');
    expect(asked()).toEqual(['home/']);
    await pass(1_100);
    expect(asked()).toEqual(['home/', 'home/y/']);
    await accept('narrow', 'home/y/1', 'home/y/2');
    expect(shown(narrow.tide, prefix('home/y/'))).toBe('in_sync home/y/1=1,home/y/2=1');
  });

  test('cost no request if a tab wants them again', async () => {
    const { wide: left } = await wide();
    left.tide.close();
    await pass(20_000);
    server.last.send(': \n\n');
    open([prefix('home/')]);
    await pass(20_000);
    server.last.send(': \n\n');
    await pass(20_000);
    expect(asked()).toEqual(['home/']);
  });

  test('cost one request, however many tabs come and go', async () => {
    const { wide: left, narrow } = await wide();
    left.tide.close();
    for (let i = 0; i < 10; i++) {
      const { tide } = open([prefix('home/')]);
      await pass(10_000);
      server.last.send(': \n\n');
      tide.close();
      await pass(10);
    }
    expect(asked()).toEqual(['home/']);
    await pass(29_000);
    server.last.send(': \n\n');
    await pass(2_000);
    expect(asked()).toEqual(['home/', 'home/y/']);
    narrow.tide.close();
    await pass(100);
  });
});
