import { act, cleanup, render } from '@testing-library/react';
import type { Watch } from '@watchtide/protocol';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { changesOf } from '../src/charts/changes';
import { Overview } from '../src/overview/Overview';
import { subscribersOf } from '../src/subscribers/history';
import { SubscribersPage } from '../src/subscribers/SubscribersPage';

vi.mock('../src/charts/plot', () => ({
  plot: () => ({ setData: () => {}, destroy: () => {}, redraw: () => {} }),
  drawn: (data: unknown) => data,
}));

const who = vi.hoisted(() => ({ operator: true }));
vi.mock('../src/gateway/operator', () => ({ isOperator: () => Promise.resolve(who.operator), useOperator: () => who.operator }));

const list = (value: number) => new Array<number>(100).fill(value);
const figures = {
  states: [{ state: 'in_sync', samples: 100 }],
  ...{ changes: list(20), events: list(1), bytes: list(1), latency_p50_ms: list(1), latency_p99_ms: list(1), lag: list(3) },
  ...{ subscribers: list(4), delivery_p50_ms: list(1), delivery_p99_ms: list(1), delivery_reports: list(0) },
};

const watch = { source: 'local', state: 'in_sync', epoch: 'ab12', revision: '17', count: 1, bytes: 1, subscribers: 3 };
const upstream = { connected: true, attempts: 0 };

let asked: string[] = [];
let name = ''; // another one in each test, since the page keeps what it has measured
function serve(instance: string, operator: boolean): void {
  name = `notes-${now}-${instance}`;
  let changes = 0;
  asked = [];
  who.operator = operator;
  vi.stubGlobal('fetch', ({ pathname }: URL) => {
    asked.push(pathname.split('/').at(-1)!);
    switch (asked.at(-1)) {
      case 'series':
        return Promise.resolve(
          Response.json({
            instance,
            delivery_reports: false,
            start: 1000,
            step: 1,
            samples: 100,
            count: 1,
            total: figures,
            watches: [{ watch: name, ...figures }],
            without: [],
          }),
        );
      case 'subscribers':
        return Promise.resolve(
          Response.json({
            instance: 'one',
            count: 0,
            lag: { max: 0, buckets: [] },
            groups: [],
            left_minutes: [],
            subscribers: [],
            left: [],
            left_reasons: {},
            upstreams: [],
            views: [],
          }),
        );
      default:
        return Promise.resolve(
          Response.json({ instance: 'one', watches: [{ ...watch, name, upstream, writable: true, changes: (changes += 20) } as Watch] }),
        );
    }
  });
}

const settle = async (ms = 0) => {
  for (let i = 0; i < 6; i++) await act(() => vi.advanceTimersByTimeAsync(i === 0 ? ms : 0));
};

let now = Date.parse('2026-01-02T03:04:05Z');
beforeEach(() => {
  vi.useFakeTimers({ now: (now += 3_600_000) });
  location.hash = '#/';
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const sparkline = () => document.querySelector('.rated')?.textContent;

it('the charts of the overview are full when it opens', async () => {
  serve('one', true);
  render(<Overview />);
  await settle();
  expect(sparkline()).toBe('20, at most 20 in the last two minutes');
  await settle(5000);
  expect(asked.filter((path) => path === 'series')).toHaveLength(1);
});

it('the charts of subscribers are full, and go on', async () => {
  serve('one', true);
  render(<SubscribersPage />);
  await settle();
  for (let i = 0; i < 5; i++) await settle(1000);
  const samples = subscribersOf({ data: undefined, at: 0, error: '', status: 0 }).of(name);
  expect(samples.slice(0, 97).every(({ value }) => value === 4)).toBe(true);
  expect(samples.at(-1)?.value).toBe(3);
  expect(samples.length).toBeGreaterThan(100);
});

/** Hides the tab for a time. */
async function hide(ms: number): Promise<void> {
  const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
  document.dispatchEvent(new Event('visibilitychange'));
  await settle(ms);
  hidden.mockRestore();
  document.dispatchEvent(new Event('visibilitychange'));
  await settle();
}

it('what was recorded while the tab was hidden fills the gap', async () => {
  serve('one', true);
  render(<Overview />);
  for (let i = 0; i < 5; i++) await settle(1000);
  await hide(60_000);
  await settle(1000);
  expect(asked.filter((path) => path === 'series')).toHaveLength(2);
  const rates = changesOf({ data: undefined, at: 0, error: '', status: 0 }).of(name);
  expect(new Set(rates.map(({ value }) => value))).toEqual(new Set([20])); // and no mean over the gap
  expect(Math.max(...rates.slice(1).map(({ at }, i) => at - rates[i]!.at))).toBeLessThan(2500);
  for (let i = 0; i < 5; i++) await settle(1000);
  expect(asked.filter((path) => path === 'series')).toHaveLength(2);
});

it('a gap that is longer than what was recorded stays one', async () => {
  serve('one', true);
  render(<SubscribersPage />);
  for (let i = 0; i < 5; i++) await settle(1000);
  await hide(1_000_000);
  await settle(1000);
  const samples = subscribersOf({ data: undefined, at: 0, error: '', status: 0 }).of(name);
  const unknown = samples.findIndex(({ value }) => Number.isNaN(value));
  expect(samples.filter(({ value }) => Number.isNaN(value))).toHaveLength(1);
  expect(samples[unknown]!.at - samples[unknown - 1]!.at).toBeGreaterThan(800_000);
  expect(samples.slice(unknown + 1, -2).every(({ value }) => value === 4)).toBe(true);
  expect(samples.at(-1)?.value).toBe(3);
});

it('nobody else asks for what was recorded while the tab was hidden', async () => {
  serve('one', false);
  render(<Overview />);
  await settle(1000);
  await hide(60_000);
  await settle(1000);
  expect(asked).not.toContain('series');
  const rates = changesOf({ data: undefined, at: 0, error: '', status: 0 }).of(name);
  expect(rates.some(({ value }) => value < 1)).toBe(true); // the mean over that time is known
});

it('the figures of another replica are not used, and nobody else is asked for any', async () => {
  serve('two', true);
  render(<Overview />);
  await settle();
  expect(sparkline()).toBe('');
  cleanup();
  vi.setSystemTime((now += 600_000));
  serve('one', false);
  render(<Overview />);
  await settle();
  expect(asked).not.toContain('series');
  expect(sparkline()).toBe('');
});
