import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import type { Watch } from '@watchtide/protocol';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { useReported } from '../src/app/troubles';
import { Overview } from '../src/overview/Overview';

const watchOf = (name: string, more: Partial<Watch> = {}): Watch => ({
  name,
  source: 'local',
  state: 'in_sync',
  since: '2026-01-02T03:04:05Z',
  epoch: 'ab12',
  revision: '17',
  count: 1234,
  bytes: 2048,
  subscribers: 3,
  changes: 5,
  writable: true,
  upstream: { connected: true, attempts: 0 },
  ...more,
});

let reported = '';
function Reported() {
  reported = useReported()
    .map(({ what, state, reason }) => `${what} ${state} ${reason}`)
    .join(', ');
  return null;
}

async function show(...watches: Watch[]): Promise<void> {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ watches })));
  render(
    <>
      <Overview />
      <Reported />
    </>,
  );
  await act(() => vi.advanceTimersByTimeAsync(0));
}

const names = () => screen.queryAllByTestId('watch-row').map((row) => row.dataset['watch']);

let now = Date.parse('2026-01-02T03:04:05Z');
beforeEach(() => {
  vi.useFakeTimers({ now: (now += 60_000) }); // after what the page remembers
  location.hash = '#/';
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('the overview', () => {
  it('shows the hidden characters of an error as escapes', async () => {
    await show(watchOf('a', { upstream: { connected: false, attempts: 1, last_error: 'no\u202e route' } }));
    const link = screen.getByTitle('no\\u202e route');
    expect(link.textContent).toBe('no\\u202e route');
  });
  it('links each watch to its table and to its stream', async () => {
    await show(watchOf('a/b'));
    expect(screen.getByRole('link', { name: 'a/b' }).getAttribute('href')).toBe('#/watches/a%2Fb');
    expect(screen.getByRole('link', { name: 'stream of a/b' }).getAttribute('href')).toBe('#/stream/a%2Fb');
    const row = screen.getByTestId('watch-row').textContent;
    for (const text of ['local', 'in sync', '1,234', '2.0 KiB', '17', 'ab12']) expect(row).toContain(text);
  });
  it('shows changes per second', async () => {
    await show(watchOf('calm'), watchOf('lively'));
    vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ watches: [watchOf('calm'), watchOf('lively', { changes: 25 })] })));
    await act(() => vi.advanceTimersByTimeAsync(1000));
    const shown = screen.getAllByTestId('watch-row').map((row) => row.querySelector('.rated')?.textContent);
    expect(shown).toEqual(['0, at most 0 in the last two minutes', '20, at most 20 in the last two minutes']);
  });
  it('shows no figures of a watch of which one may see only a part', async () => {
    const partial = watchOf('orders', { partial: true, count: 0, bytes: 0, subscribers: 0, changes: 0 });
    await show(partial);
    const cells = [...screen.getByTestId('watch-row').querySelectorAll('td.number')].map(({ textContent }) => textContent);
    expect(cells).toEqual(['–', '–', '–']);
    expect(screen.queryByText('Resources', { selector: 'dt' })).toBeNull();
    cleanup();
    await show(partial, watchOf('notes'));
    expect(screen.getByText('Resources', { selector: 'dt' }).nextSibling?.textContent).toBe('1,234 in 1 of 2 watches');
  });
  it('sorts by state, worst first, and keeps the order in the URL', async () => {
    await show(watchOf('a'), watchOf('b', { state: 'priming' }), watchOf('c', { state: 'stale' }), watchOf('d', { state: 'resyncing' }));
    expect(names()).toEqual(['a', 'b', 'c', 'd']);
    fireEvent.click(screen.getByRole('button', { name: 'State' }));
    expect(names()).toEqual(['c', 'd', 'b', 'a']);
    expect(location.hash).toBe('#/?sort=state');
  });
  it('offers a filter if there are many watches', async () => {
    await show(...Array.from({ length: 13 }, (_, i) => watchOf(`w${i}`, { source: i < 2 ? 'machine' : 'local' })));
    fireEvent.change(screen.getByRole('searchbox', { name: 'Filter' }), { target: { value: 'MACH' } });
    expect(names()).toEqual(['w0', 'w1']);
    expect(screen.getByRole('status').textContent).toBe('2 of 13');
  });
  it('reports watches that are not in sync, with the reason', async () => {
    await show(watchOf('a'), watchOf('b', { state: 'stale', reason: 'no connection' }));
    expect(reported).toBe('b stale no connection');
  });
  it('shows instructions if nothing is configured', async () => {
    await show();
    expect(screen.getByText(/has no watches/)).toBeTruthy();
  });
});
