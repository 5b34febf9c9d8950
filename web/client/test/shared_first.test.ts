import { expect, test } from 'vitest';
import { endOfSnapshot, hello, pass, reset, upsert } from './server.js';
import { open, server, sharing, shown } from './sharing.js';

sharing();

test('a tab has what comes first from the hub, before the snapshot', async () => {
  const { tide } = open([{ watch: 'w', first: ['b', 'n'] }]);
  const { tide: plain } = open(['w']);
  await pass();
  expect(server.last.url.searchParams.get('first.w')).toBe('b,n');
  server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'b', 5, 2, 'w@e-0/5'));
  await pass();
  const { state, first } = tide.store('w').view;
  expect([state, [...first!.values()].map(({ key, value }) => [key, value])]).toEqual(['priming', [['b', 2]]]);
  expect(plain.store('w').view.first).toBeUndefined();
  server.last.send(upsert('w', 'a', 5, 1) + upsert('w', 'b', 5, 2) + endOfSnapshot('w', 5, 2, 'w@e-5'));
  await pass();
  expect([shown(tide), shown(plain)]).toEqual(['in_sync b=2,a=1', 'in_sync b=2,a=1']);
  expect(tide.store('w').view.first).toBeUndefined();
  const { tide: late } = open([{ watch: 'w', first: ['a'] }]);
  await pass();
  expect(shown(late)).toBe('in_sync b=2,a=1');
  expect(server.exchanges).toHaveLength(1);
});

test('exactly these keys are a part of their own, which tabs share', async () => {
  const some = { watch: 'w', keys: ['b', 'a'] };
  const { tide: one } = open([some]);
  const { tide: two } = open([{ watch: 'w', keys: 'a,b' }]);
  await pass();
  expect(server.exchanges.map(({ url }) => url.search)).toEqual(['?watch=w&keys.w=a%2Cb']);
  server.last.accept(hello(['w']) + reset('w', 'w@e-0/5') + upsert('w', 'a', 5, 1) + endOfSnapshot('w', 5, 1, 'w@e-5'));
  await pass();
  expect([shown(one, some), shown(two, some)]).toEqual(['in_sync a=1', 'in_sync a=1']);
});
