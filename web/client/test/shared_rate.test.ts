import { expect, test, vi } from 'vitest';
import { autoRate, type RateChooser, type RateControl } from '../src/rate.js';
import { pass, remove, status, upsert } from './server.js';
import { open, primed, server, sharing, shown, told } from './sharing.js';

sharing();

const at = (rate: string) => ({ maxRate: (): RateControl => ({ rate }) });

test('a tab gets changes at its rate, and another one all of them', async () => {
  const { tide } = await primed(at('2/s'));
  const other = open();
  await pass(1_000);
  const [changes, all] = [told(tide), told(other.tide)];
  for (let i = 0; i < 20; i++) {
    server.last.send(upsert('w', `k${i % 3}`, 6 + i, i, `w@e-${6 + i}`));
    await pass(100);
  }
  await pass(500);
  expect(changes).toEqual(['in_sync k0', 'in_sync k1,k2,k0', 'in_sync k2,k0,k1', 'in_sync k1,k2,k0', 'in_sync k0,k1,k2']);
  expect(all).toHaveLength(20);
  expect(shown(tide)).toBe(shown(other.tide));
  expect(server.exchanges).toHaveLength(1);
  expect(server.last.url.searchParams.has('max_rate')).toBe(false);
  expect(tide.store('w').view.maxRate).toBe('2/s');
  expect(other.tide.store('w').view).not.toHaveProperty('maxRate');
});

test('a change after a quiet time is not held back, nor is a status', async () => {
  const { tide } = await primed(at('12/m'));
  await pass(5_000);
  server.last.send(upsert('w', 'b', 6, 2, 'w@e-6'));
  await pass();
  expect(shown(tide)).toBe('in_sync a=1,b=2');
  server.last.send(remove('w', 'b', 7, 'w@e-7'));
  await pass(1_000);
  expect(shown(tide)).toBe('in_sync a=1,b=2');
  server.last.send(status('w', 'stale'));
  await pass();
  expect(shown(tide)).toBe('stale a=1');
});

test('a tab that is hidden for five seconds gets changes each five seconds', async () => {
  const { tab, tide } = await primed({ maxRate: autoRate });
  tab.show(true);
  // Timers of hidden tabs are late.
  for (let i = 0; i < 7; i++) {
    await pass(10_000);
    server.last.send(':\n\n');
  }
  expect(tide.store('w').view.maxRate).toBe('12/m');
  const changes = told(tide);
  for (let i = 0; i < 100; i++) {
    server.last.send(upsert('w', 'a', 6 + i, i, `w@e-${6 + i}`));
    await pass(100);
  }
  expect(changes.length).toBeLessThanOrEqual(3);
  tab.show();
  await pass();
  expect(shown(tide)).toBe('in_sync a=99');
  expect(tide.store('w').view).not.toHaveProperty('maxRate');
  expect(changes.every((change) => change.startsWith('in_sync a') || change === 'in_sync ')).toBe(true);
  expect(server.exchanges).toHaveLength(1);
});

test('a tab that changes its rate stays in sync while the gateway takes its time to say whose it is', async () => {
  const control: { rate: string | undefined } = { rate: undefined };
  let chosen = () => {};
  const maxRate: RateChooser = (run) => {
    chosen = run;
    return control;
  };
  const { tide } = await primed({ maxRate });
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    if (url.endsWith('/v1/session')) await new Promise((resolve) => setTimeout(resolve, 2_000));
    return fetch(url, init);
  });
  const changes = told(tide);
  let revision = 5;
  for (const rate of ['2/s', '5/s', '2/s']) {
    control.rate = rate;
    chosen();
    for (let i = 0; i < 5; i++) {
      server.last.send(upsert('w', 'a', ++revision, i, `w@e-${revision}`));
      await pass(1_000);
    }
    expect(tide.store('w').view.maxRate).toBe(rate);
    expect(shown(tide)).toBe('in_sync a=4');
  }
  expect(changes.every((change) => change.startsWith('in_sync'))).toBe(true);
  expect(server.exchanges).toHaveLength(1);
});
