import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import type { Subscriber, Subscribers } from '@watchtide/protocol';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { useReported } from '../src/app/troubles';
import { HealthPage } from '../src/health/HealthPage';
import { SubscribersPage } from '../src/subscribers/SubscribersPage';

// There is no canvas here; what it draws is tested with the curves.
vi.mock('../src/charts/plot', () => ({ plot: () => ({ setData() {}, destroy() {}, redraw() {} }), drawn: () => [] }));

const began = Date.parse('2026-01-02T03:00:00Z');

const subscriber = (id: string, more: Partial<Subscriber> = {}): Subscriber => ({
  id,
  address: '10.0.0.7',
  user_agent: 'curl/8.5.0',
  transport: 'sse',
  encoding: 'gzip',
  since: '2026-01-02T02:59:00Z',
  watches: ['notes'],
  position: 'notes@ab12-17',
  events: 1234,
  bytes: 2048,
  lag: 0,
  skipped: 0,
  catching_up: false,
  ...more,
});

const all: Subscribers = {
  instance: 'one',
  count: 9123,
  lag: { max: 55, buckets: [{ up_to: 0, count: 9000 }, { up_to: 9, count: 100 }, { up_to: 99, count: 23 }, { count: 0 }] },
  groups: [
    { name: 'curl', count: 9000, events: 10, bytes: 2048, skipped: 0, lag: { max: 55, buckets: [] } },
    { name: 'shop', count: 100, events: 5, bytes: 10, skipped: 0, lag: { max: 0, buckets: [] } },
  ],
  others: { count: 23, events: 1, bytes: 1, skipped: 0, lag: { max: 0, buckets: [] } },
  left_minutes: [{ minute: '2026-01-02T02:58:00Z', reasons: { client_closed: 3, write_timeout: 1 } }],
  subscribers: [subscriber('1', { lag: 55, skipped: 7, catching_up: true }), { ...subscriber('2', { encoding: '' }) }],
  left: [{ ...subscriber('3'), left: '2026-01-02T02:59:30Z', reason: 'max_age' }],
  left_reasons: { max_age: 2, client_closed: 30 },
  views: [
    { watch: 'notes', filter: 'value.n > 1', fields: 'n,team', resources: 7, bytes: 2048, subscribers: 3 },
    { watch: 'notes', prefix: 'a/', resources: 1, bytes: 90, subscribers: 0 },
  ],
  upstreams: [
    {
      watch: 'notes',
      source: 'local',
      connected: true,
      reconnects: { ended: 0, error: 3, stalled: 1 },
      resyncs: { initial: 1, reconnect: 2 },
      incidents: [
        {
          at: '2026-01-02T02:58:00Z',
          kind: 'reconnect',
          reason: 'error',
          detail: 'connection refused',
          times: 3,
          first: '2026-01-02T02:57:00Z',
        },
      ],
    },
  ],
};

const watches = ['drafts', 'notes'].map((name) => ({
  name,
  source: 'local',
  state: 'in_sync',
  since: '2026-01-02T02:00:00Z',
  epoch: 'ab12',
  revision: '17',
  count: 2,
  bytes: 99,
  subscribers: 1,
  writable: true,
  upstream: {
    connected: name === 'notes',
    attempts: name === 'notes' ? 0 : 4,
    ...(name === 'notes' ? {} : { next_attempt_at: '2026-01-02T03:00:12Z' }),
    last_error: 'no route',
    last_error_at: '2026-01-02T02:59:00Z',
  },
}));

const notFound = () => Response.json({ type: 'about:blank', title: 'Not Found', status: 404, detail: 'there is nothing' }, { status: 404 });

let operator = true;
let asked: string[] = [];
let troubles: ReturnType<typeof useReported> = [];
function Reported() {
  troubles = useReported();
  return null;
}

async function show(page: React.ReactNode, answer: (url: URL) => Response): Promise<void> {
  vi.stubGlobal('fetch', (url: URL) => {
    asked.push(url.pathname + url.search);
    if (url.pathname === '/v1/client') return Promise.resolve(Response.json({ instance: 'one', naming: 'direct', operator }));
    return Promise.resolve(url.pathname.endsWith('/v1/watches') ? Response.json({ watches }) : answer(url));
  });
  render(
    <>
      {page}
      <Reported />
    </>,
  );
  await act(() => vi.advanceTimersByTimeAsync(0)); // who is an operator
  await act(() => vi.advanceTimersByTimeAsync(0));
}

const row = (name: string) => within(screen.getByRole('link', { name }).closest('tr')!);

beforeEach(() => {
  vi.useFakeTimers({ now: began });
  location.hash = '#/subscribers';
  asked = [];
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('the subscribers page', () => {
  it('shows the connected subscribers, and their number', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    expect(screen.getByRole('region', { name: 'Connected' }).textContent).toContain('9,123');
    const [first] = within(screen.getByRole('table', { name: 'Connected' }))
      .getAllByRole('row')
      .slice(1);
    for (const text of ['10.0.0.7', 'curl/8.5.0', 'sse, gzip', '1 min', '1,234', '2.0 KiB', '55', 'catching up'])
      expect(first!.textContent).toContain(text);
    expect(within(first!).getByRole('link', { name: 'notes' }).getAttribute('href')).toBe('#/watches/notes');
  });
  it('shows the largest views, and what each selects', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    const views = within(screen.getByRole('table', { name: 'Largest views' }))
      .getAllByRole('row')
      .slice(1)
      .map(({ textContent }) => textContent);
    expect(views).toEqual(['notesfilter value.n > 1fields n,team372.0 KiB', 'notesprefix a/0190 B']);
  });
  it('shows disconnects by reason, the most frequent first', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    const reasons = within(screen.getByRole('table', { name: /Disconnects by reason/ }))
      .getAllByRole('row')
      .slice(1)
      .map(({ textContent }) => textContent);
    expect(reasons).toEqual(['client_closedthe client disconnected30', 'max_agethe stream reached its maximum age2']);
    const [departure] = within(screen.getByRole('table', { name: 'Recent disconnects' }))
      .getAllByRole('row')
      .slice(1);
    expect(departure!.textContent).toContain('max_age30 s ago30 s');
  });
  it('requests the selected watch, and keeps it in the URL', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    fireEvent.change(screen.getByRole('combobox', { name: 'Watch' }), { target: { value: 'notes' } });
    expect(location.hash).toBe('#/subscribers?watch=notes');
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked.at(-1)).toBe('/v1/subscribers?limit=100&watch=notes&group=application');
  });
  it('searches once the user pauses', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    fireEvent.change(screen.getByRole('searchbox', { name: 'Search subscribers' }), { target: { value: '10.0' } });
    await act(() => vi.advanceTimersByTimeAsync(299));
    expect(location.hash).toBe('#/subscribers');
    await act(() => vi.advanceTimersByTimeAsync(1));
    expect(location.hash).toBe('#/subscribers?search=10.0');
    expect(asked.at(-1)).toBe('/v1/subscribers?limit=100&search=10.0&group=application');
  });
  it('selects a group, and all again', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    expect(within(screen.getByRole('table', { name: 'Groups' })).getAllByRole('row')).toHaveLength(4);
    fireEvent.click(screen.getByRole('button', { name: 'shop' }));
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked.at(-1)).toBe('/v1/subscribers?limit=100&application=shop&group=application');
    fireEvent.click(screen.getByRole('button', { name: /application: shop/ }));
    expect(location.hash).toBe('#/subscribers');
  });
  it('shows principals, and selects one of their groups', async () => {
    const principal = { mechanism: 'jwt', issuer: 'https://idp.example.com', name: 'ann', client_id: 'shop-web' } as const;
    const name = 'ann (https://idp.example.com)';
    await show(<SubscribersPage />, () =>
      Response.json({ ...all, groups: [{ ...all.groups![0]!, name }], subscribers: [subscriber('1', { principal })] }),
    );
    expect(screen.getByText('ann').getAttribute('title')).toBe('ann, https://idp.example.com, OAuth client shop-web');
    fireEvent.change(screen.getByRole('combobox', { name: 'by' }), { target: { value: 'principal' } });
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked.at(-1)).toBe('/v1/subscribers?limit=100&group=principal');
    fireEvent.click(screen.getByRole('button', { name }));
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked.at(-1)).toBe('/v1/subscribers?limit=100&principal=ann+%28https%3A%2F%2Fidp.example.com%29&group=principal');
    fireEvent.change(screen.getByRole('combobox', { name: 'by' }), { target: { value: 'client_id' } });
    expect(screen.getByRole('columnheader', { name: 'OAuth client' })).toBeTruthy();
  });
  it('has one table of all of them, and fetches those that are scrolled to', async () => {
    const ids = Array.from({ length: 5000 }, (_, i) => String(i));
    await show(<SubscribersPage />, ({ searchParams }) => {
      const from = Number(searchParams.get('after') ?? -1) + 1;
      const to = from + Number(searchParams.get('limit'));
      const next = to < ids.length ? { next: String(to - 1) } : {};
      return Response.json({
        ...all,
        ...next,
        count: ids.length,
        subscribers: ids.slice(from, to).map((id) => subscriber(id, { address: `no ${id}` })),
      });
    });
    const table = () => screen.getByRole('table', { name: 'Connected' });
    expect(table().getAttribute('aria-rowcount')).toBe('5001');
    expect(within(table()).getByText('no 0')).toBeTruthy();
    const scroller = screen.getByRole('region', { name: 'Connected subscribers' });
    Object.defineProperty(scroller, 'clientHeight', { value: 600 });
    const scrollTo = async (row: number) => {
      scroller.scrollTop = row * 56;
      asked = [];
      fireEvent.scroll(scroller);
      for (let i = 0; i < 30; i++) await act(() => vi.advanceTimersByTimeAsync(0));
    };
    await scrollTo(150);
    expect(asked).toEqual(['/v1/subscribers?limit=200&after=99']);
    expect(within(table()).getByText('no 150').closest('tr')!.getAttribute('aria-rowindex')).toBe('152');
    await scrollTo(4990); // the way there is taken in large steps
    expect(asked.map((path) => new URLSearchParams(path.split('?')[1]).get('limit'))).toEqual([
      '1000',
      '1000',
      '1000',
      '1000',
      '200',
      '200',
      '200',
      '200',
    ]);
    expect(within(table()).getByText('no 4999')).toBeTruthy();
    expect(within(table()).getAllByRole('row').length).toBeLessThan(40);
    await scrollTo(0);
    expect(within(table()).getByText('no 0')).toBeTruthy();
    await scrollTo(150); // again, since it may be another one by now
    expect(asked).toEqual(['/v1/subscribers?limit=200&after=99']);
  });
  it('sorts by age, at the gateway', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    fireEvent.change(screen.getByRole('combobox', { name: 'sorted by' }), { target: { value: 'since' } });
    expect(location.hash).toBe('#/subscribers?sort=since');
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked.at(-1)).toBe('/v1/subscribers?limit=100&sort=since&group=application');
  });
  it('refreshes the rows on the screen', async () => {
    const ids = Array.from({ length: 500 }, (_, i) => String(i));
    let lag = 0;
    await show(<SubscribersPage />, ({ searchParams }) => {
      const from = Number(searchParams.get('after') ?? -1) + 1;
      const to = from + Number(searchParams.get('limit'));
      const next = to < ids.length ? { next: String(to - 1) } : {};
      return Response.json({ ...all, ...next, count: ids.length, subscribers: ids.slice(from, to).map((id) => subscriber(id, { lag })) });
    });
    const scroller = screen.getByRole('region', { name: 'Connected subscribers' });
    scroller.scrollTop = 200 * 56;
    fireEvent.scroll(scroller);
    for (let i = 0; i < 5; i++) await act(() => vi.advanceTimersByTimeAsync(0));
    lag = 777;
    await act(() => vi.advanceTimersByTimeAsync(2100));
    expect(within(screen.getByRole('table', { name: 'Connected' })).getAllByText('777').length).toBeGreaterThan(5);
  });
  it('shows lags, and disconnects by the minute', async () => {
    await show(<SubscribersPage />, () => Response.json(all));
    expect(screen.getByRole('region', { name: /by lag/ }).textContent).toContain('10 – 9923');
    expect(screen.getByRole('region', { name: /last hour/ }).textContent).toContain('write_timeout 1');
  });
  it('does not ask for what is only for operators', async () => {
    operator = false;
    await show(<SubscribersPage />, () => Response.json(all));
    await act(() => vi.advanceTimersByTimeAsync(1)); // the former test had an operator
    asked = [];
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    expect(screen.getByText(/enabled: true/)).toBeTruthy();
    expect(asked.some((path) => path.includes('subscribers'))).toBe(false);
    operator = true;
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    expect(screen.getByText('Disconnects since start')).toBeTruthy();
  });
  it('names the missing setting if it is not served, without a warning', async () => {
    await show(<SubscribersPage />, notFound);
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    expect(screen.getByText(/enabled: true/)).toBeTruthy();
    expect(troubles).toEqual([]);
  });
  it('reports that the watch does not exist', async () => {
    location.hash = '#/subscribers?watch=nots';
    await show(<SubscribersPage />, notFound);
    expect(screen.getByText(/no watch “nots”/)).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Show all watches' }));
    expect(location.hash).toBe('#/subscribers');
  });
  it('reports a gateway that fails', async () => {
    await show(<SubscribersPage />, () => new Response('', { status: 500, statusText: 'Internal Server Error' }));
    expect(troubles).toMatchObject([{ what: 'The gateway', reason: '500 Internal Server Error' }]);
  });
});

describe('the page of health', () => {
  it('shows reconnects and resyncs by reason, with disconnected watches first', async () => {
    await show(<HealthPage />, () => Response.json(all));
    const names = within(screen.getByRole('table', { name: 'Watches and their upstreams' }))
      .getAllByRole('rowheader')
      .map(({ textContent }) => textContent);
    expect(names).toEqual(['drafts local', 'notes local']);
    expect(row('notes').getByText('error 3, stalled 1')).toBeTruthy();
    expect(row('notes').getByText('reconnect 2')).toBeTruthy();
    expect(screen.queryByText(/initial/)).toBeNull(); // the load at the start is no resync
    expect(screen.getByText('Resyncs since start').nextSibling?.textContent).toBe('2');
    expect(row('drafts').getByText(/attempt 4, next in/).textContent).toContain('attempt 4, next in 12 s');
    expect(row('notes').queryByText(/next in/)).toBeNull();
    const [incident] = within(screen.getByRole('table', { name: 'Incidents' }))
      .getAllByRole('row')
      .slice(1);
    expect(incident!.textContent).toMatch(/2 min ago.*notes.*reconnect: error.*3 times since.*connection refused/);
  });
  it('falls back to the data of the watches if the rest is not served', async () => {
    await show(<HealthPage />, notFound);
    expect(row('drafts').getByText('no route')).toBeTruthy();
    expect(screen.getByText(/enabled: true/)).toBeTruthy();
    expect(screen.queryByText('Reconnects')).toBeNull();
  });
});
