import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import type { Figures, Series, Watch } from '@watchtide/protocol';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Samples } from '../src/charts/samples';
import { areas, ceiling, heat, latency, size, ticks } from '../src/timeline/scale';
import { sinceOfStretch, together } from '../src/timeline/states';
import { TimelinePage } from '../src/timeline/TimelinePage';

vi.mock('../src/charts/plot', () => ({
  plot: () => ({ setData: () => {}, destroy: () => {}, redraw: () => {} }),
  drawn: (data: unknown) => data,
}));

const who = vi.hoisted(() => ({ operator: true }));
vi.mock('../src/gateway/operator', () => ({ isOperator: () => Promise.resolve(who.operator) }));

const start = Date.parse('2026-01-02T03:04:00Z') / 1000;

const figuresOf = (more: Partial<Figures> = {}): Figures => ({
  states: [{ state: 'in_sync', samples: 4 }],
  changes: [1, 2, 40, 3],
  events: [1, 2, 80, 3],
  bytes: [100, 200, 8000, 300],
  latency_p50_ms: [null, 0.4, 1.5, 1],
  latency_p99_ms: [null, 4, 1500, 2],
  lag: [0, 0, 9, 0],
  subscribers: [1, 2, 2, 2],
  delivery_p50_ms: [null, 40, null, null],
  delivery_p99_ms: [null, 90, null, null],
  delivery_reports: [0, 3, 0, 0],
  ...more,
});

const late: Figures['states'] = [
  { state: 'in_sync', samples: 1 },
  { state: 'stale', samples: 2 },
  { state: 'in_sync', samples: 1 },
];

const seriesOf = (more: Partial<Series> = {}): Series => ({
  instance: 'one',
  delivery_reports: true,
  start,
  step: 1,
  samples: 4,
  count: 3,
  total: figuresOf({ states: late }),
  watches: [
    { watch: 'notes', ...figuresOf() },
    { watch: 'orders/{region}', template: true, ...figuresOf({ states: late }) },
  ],
  without: [{ watch: 'small', reason: 'the memory of the watch has no room' }],
  ...more,
});

let asked: string[] = [];
async function show(watch: string, series: Series | number, operator = true): Promise<void> {
  asked = [];
  who.operator = operator;
  serve(series);
  render(<TimelinePage watch={watch} />);
  for (let i = 0; i < 5; i++) await act(() => vi.advanceTimersByTimeAsync(0));
}

function serve(series: Series | number): void {
  vi.stubGlobal('fetch', (url: URL) => {
    asked.push(`${url.pathname.split('/').at(-1)}${url.search}`);
    if (url.pathname.endsWith('watches')) return Promise.resolve(Response.json({ instance: 'one', watches: [{ name: 'notes' }] }));
    return Promise.resolve(typeof series === 'number' ? new Response('{}', { status: series }) : Response.json(series));
  });
}

const row = (name: string) => within(screen.getAllByTestId('timeline-row').find((one) => one.dataset['watch'] === name)!);

let now = start * 1000;
beforeEach(() => {
  vi.useFakeTimers({ now: (now += 120_000) });
  location.hash = '#/timeline';
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('the timeline', () => {
  it('has a row for each watch, and one for all', async () => {
    await show('', seriesOf());
    expect(screen.getAllByTestId('timeline-row').map((one) => one.dataset['watch'])).toEqual(['', 'notes', 'orders/{region}']);
    expect(row('notes').getByText(/always in sync, at most 40 changes per second, latency at most 1.5 s, lag at most 9/)).toBeTruthy();
    expect(row('orders/{region}').getByText(/not in sync for 2 s/)).toBeTruthy();
    expect(screen.getByText(/has no figures: the memory of the watch/)).toBeTruthy();
    expect(screen.getByRole('link', { name: 'notes' }).getAttribute('href')).toBe('#/timeline/notes');
  });
  it('reads the figures at the cursor, which the keyboard moves too', async () => {
    await show('', seriesOf());
    expect(row('notes').getByText('3.0 changes/s')).toBeTruthy();
    const slider = screen.getByRole('slider', { name: 'Time' });
    fireEvent.change(slider, { target: { value: '2' } });
    expect(row('notes').getByText('40 changes/s')).toBeTruthy();
    expect(row('notes').getByText('1.5 ms, p99 1.5 s')).toBeTruthy();
    expect(row('notes').getByText('lag 9')).toBeTruthy();
    expect(slider.getAttribute('aria-valuetext')).toMatch(/orders\/{region} stale since \d\d:04:01$/);
    expect(row('orders/{region}').getByText(/since/).parentElement?.textContent).toMatch(/^stale since \d\d:04:01$/);
  });
  it('shows gaps as gaps', async () => {
    await show(
      '',
      seriesOf({
        watches: [
          { watch: 'notes', ...figuresOf({ changes: [1, null, null, 3], states: [{ samples: 3 }, { state: 'idle', samples: 1 }] }) },
        ],
        count: 1,
        without: [],
      }),
    );
    expect(row('notes').getByText(/since/).parentElement?.textContent).toMatch(/^idle since/);
    fireEvent.change(screen.getByRole('slider'), { target: { value: '1' } });
    expect(row('notes').getByText(/no figures/)).toBeTruthy();
    expect(row('notes').getByText('–')).toBeTruthy();
  });
  it('keeps the period in the URL, and asks for its step', async () => {
    await show('', seriesOf());
    expect(asked).toContain('series?step=1s&limit=200');
    fireEvent.click(screen.getByRole('button', { name: '1 h' }));
    expect(location.hash).toBe('#/timeline?range=1h');
    for (let i = 0; i < 5; i++) await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked).toContain('series?step=10s&limit=200');
    expect(screen.getByRole('button', { name: '1 h' }).getAttribute('aria-pressed')).toBe('true');
  });
  it('goes on with what is newer', async () => {
    await show('', seriesOf());
    await act(() => vi.advanceTimersByTimeAsync(1000));
    expect(asked.at(-1)).toBe(`series?step=1s&limit=200&since=${start + 3}`);
  });
  it('shows one watch with charts, and what users see', async () => {
    await show('notes', seriesOf({ watches: [{ watch: 'notes', ...figuresOf() }], total: null }));
    expect(asked).toContain('series?step=1s&watch=notes');
    expect(screen.getByRole('img', { name: 'Latency from commit to write: at most 1.5 s' })).toBeTruthy();
    expect(screen.getByText(/Pages have reported 3 painted changes in the last five minutes/)).toBeTruthy();
    expect(screen.getByRole('img', { name: 'From the commit until it is painted: at most 90 ms' })).toBeTruthy();
  });
  it('says how to turn reports of browsers on', async () => {
    await show('', seriesOf({ delivery_reports: false }));
    expect(screen.getByText('http.delivery_reports: true')).toBeTruthy();
  });
  it('asks for nothing that is only for operators, and says who they are', async () => {
    await show('', seriesOf(), false);
    expect(asked.filter((path) => path.startsWith('series'))).toEqual([]);
    expect(screen.getByText('This address does not serve figures over time')).toBeTruthy();
  });
});

describe('scales', () => {
  it('are easy to read', () => {
    expect([0, 0.3, 1, 1.1, 3, 7, 12, 60, 999, 1000, 1001].map(ceiling)).toEqual([1, 1, 1, 2, 5, 10, 20, 100, 1000, 1000, 2000]);
    expect([0.001, 0.1, 1, 10_000, 1e9].map(heat)).toEqual([0, 0, 0.2, 1, 1]);
    expect([0.123, 1.26, 12.4, 2345].map(latency)).toEqual(['0.12 ms', '1.3 ms', '12 ms', '2.3 s']);
    expect(ticks(30, 330)).toEqual([60, 120, 180, 240, 300]);
    expect(ticks(1000, 1049)).toEqual([1000, 1010, 1020, 1030, 1040]);
    expect([0, 1024 * 88.3, 1024 * 176.6].map(size)).toEqual(['0 B', '88.3 KiB', '176 KiB']);
    expect(ticks(0, 3600).length).toBeLessThan(8);
  });
  it('draw a stepped area for each stretch without a gap', () => {
    expect(areas([1, 1, null, 2], 2, 10)).toBe('M0 10V5H1H2V10ZM3 10V0H4V10Z');
    expect(areas([], 1, 10)).toBe('');
  });
});

describe('a timeline that is not served', () => {
  it('leads to all watches if there is none of this name', async () => {
    location.hash = '#/timeline/pods?range=1h';
    await show('pods', 404);
    fireEvent.click(screen.getByRole('button', { name: 'Show all watches' }));
    expect(location.hash).toBe('#/timeline?range=1h');
  });
  it('is asked for again: the rules may change, and the watch may come to be', async () => {
    await show('notes', 403);
    expect(screen.getByText('You may not see figures over time')).toBeTruthy();
    serve(seriesOf());
    await act(() => vi.advanceTimersByTimeAsync(15_000));
    expect(screen.queryByText('You may not see figures over time')).toBeNull();
    who.operator = false;
    serve(404);
    await act(() => vi.advanceTimersByTimeAsync(1_000));
    expect(screen.getByText('This address does not serve figures over time')).toBeTruthy();
    cleanup();
    asked = [];
    await act(() => vi.advanceTimersByTimeAsync(60_000));
    expect(asked).toEqual([]);
  });
});

describe('samples', () => {
  it('are filled with what was before the first one of their own', () => {
    const samples = new Samples();
    samples.note(new Map([['a', Number.NaN]]), 5000);
    samples.note(new Map([['a', 7]]), 6000);
    const earlier = [3000, 4000, 5000, 6000, 7000].map((at) => ({ at, value: 1 }));
    samples.fill(new Map([['a', earlier]]));
    samples.fill(new Map([['a', earlier]]));
    expect(samples.of('a').map(({ at, value }) => [at, value])).toEqual([
      [3000, 1],
      [4000, 1],
      [5000, 1],
      [6000, 7],
    ]);
  });
});

describe('since when a watch is in a state', () => {
  const times = { start, step: 1, samples: 4 } as const;
  const stale = { state: 'stale', since: '2026-01-02T01:00:00Z' } as const;
  it('is what the watch says, for the newest stretch, also if that begins after a gap', () => {
    const newest = { state: 'stale', from: 3, samples: 1 } as const;
    expect(sinceOfStretch(newest, times, stale)).toEqual({ at: start - 2 * 3600 - 240, early: false });
    expect(sinceOfStretch(newest, times, { ...stale, state: 'in_sync' })).toEqual({ at: start + 3, early: false });
  });
  it('is that of the samples for others, or before where they begin', () => {
    expect(sinceOfStretch({ state: 'stale', from: 1, samples: 1 }, times, stale)).toEqual({ at: start + 1, early: false });
    expect(sinceOfStretch({ state: 'stale', from: 0, samples: 3 }, times, stale)).toEqual({ at: start, early: true });
  });
  it('is, for all watches, since the first is late or since the last is in sync', () => {
    const watch = (name: string, state: string, since: string) => ({ name, state, since }) as Watch;
    const all = [watch('a', 'in_sync', '2026-01-02T05:00:00Z'), watch('b', 'in_sync', '2026-01-02T04:00:00Z')];
    expect(together(all).get('')).toEqual({ state: 'in_sync', since: '2026-01-02T05:00:00Z' });
    const late = [...all, watch('c', 'stale', '2026-01-02T03:00:00Z'), watch('d', 'stale', '2026-01-02T02:00:00Z')];
    expect(together(late).get('')).toEqual({ state: 'stale', since: '2026-01-02T02:00:00Z' });
    expect(together([]).get('')).toBeUndefined();
  });
});
