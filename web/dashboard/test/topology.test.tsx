import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import type { Topology, TopologyGroup, TopologyWatch, Watch } from '@watchtide/protocol';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { nextAttempts } from '../src/topology/attempts';
import { type Edge, type Graph, graphOf, type Node } from '../src/topology/graph';
import { layoutOf, type Placed, size, thickness } from '../src/topology/layout';
import { shorten } from '../src/topology/shortened';
import { TopologyPage } from '../src/topology/TopologyPage';

const began = Date.parse('2026-01-02T03:00:00Z');
const lag = (max = 0) => ({ max, buckets: [{ count: 1 }] });
const figures = (count: number, max = 0) => ({ count, events: count * 10, bytes: 1, skipped: 0, lag: lag(max) });

const watch = (name: string, more: Partial<TopologyWatch> = {}): TopologyWatch => ({
  name,
  source: 'local',
  state: 'in_sync',
  resources: 7,
  bytes: 10,
  changes: 100,
  subscribers: 1,
  ...more,
});

const group = (application: string, watches: readonly string[], max = 0): TopologyGroup => ({
  application,
  network: '10.0.0.0/24',
  transport: 'sse',
  ...figures(watches.length, max),
  follows: watches.map((name) => ({ watch: name, count: 1 })),
});

const topologyOf = (watches: readonly TopologyWatch[], more: Partial<Topology> = {}): Topology => ({
  instance: 'one',
  at: '2026-01-02T03:00:00Z',
  sources: [...new Set(watches.map(({ source }) => source))].map((name) => {
    const all = watches.filter(({ source }) => source === name);
    return { name, watches: all.length, connected: all.filter(({ state }) => state === 'in_sync').length };
  }),
  watches: [...watches],
  views: [],
  groups: [],
  all: figures(0),
  ...more,
});

const unknown = () => NaN;

const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 200 });

/** Topologies of up to 200 watches, some of them late, and of groups with whatever names. */
const topologies = names.chain((all) =>
  fc
    .tuple(
      fc.array(fc.constantFrom('in_sync', 'stale', 'priming', 'resyncing' as const), { minLength: all.length, maxLength: all.length }),
      fc.array(fc.constantFrom('a', 'b'), { minLength: all.length, maxLength: all.length }),
      fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 50 }),
    )
    .map(([states, sources, applications]) =>
      topologyOf(
        all.map((name, i) => watch(name, { state: states[i] as TopologyWatch['state'], source: sources[i]! })),
        { groups: applications.map((one, i) => group(one, [all[i % all.length]!])) },
      ),
    ),
);

describe('the graph', () => {
  it('never folds a watch that is not in sync, and loses none', () => {
    fc.assert(
      fc.property(topologies, (topology) => {
        const { nodes } = graphOf(topology, unknown);
        const titles = new Set(nodes.filter(({ column }) => column === 'watches').map(({ title }) => title));
        for (const { name, state } of topology.watches) if (state !== 'in_sync') expect(titles.has(name)).toBe(true);
        const folded = [...titles].flatMap((title) => /^and (\d+) more, all in sync$/.exec(title)?.[1] ?? []);
        const shown = nodes.filter(({ column, id }) => column === 'watches' && id.startsWith('watch ')).length;
        expect(folded.reduce((sum, n) => sum + Number(n), shown)).toBe(topology.watches.length);
      }),
    );
  });
  it('has a node at both ends of every edge, and each node once', () => {
    fc.assert(
      fc.property(topologies, (topology) => {
        const { nodes, edges } = graphOf(topology, unknown);
        const ids = nodes.map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
        for (const { from, to } of edges) expect(ids).toEqual(expect.arrayContaining([from, to]));
      }),
    );
  });
  it('carries lateness from a source to the subscribers', () => {
    const late = watch('a', { state: 'stale', source: 'away', reason: 'connection refused' });
    const { nodes, edges } = graphOf(topologyOf([late, watch('b')], { groups: [group('shop', ['a', 'b'])] }), unknown);
    expect(nodes.find(({ id }) => id === 'source away')!.freshness).toBe('late');
    expect(edges.find(({ from }) => from === 'source away')!.freshness).toBe('late');
    expect(edges.find(({ from }) => from === 'watch a')!.freshness).toBe('late');
    expect(edges.find(({ from }) => from === 'watch b')!.freshness).toBe('fresh');
  });
  it('tells a load from an upstream that is away', () => {
    const freshness = (more: Partial<TopologyWatch>) => graphOf(topologyOf([watch('a', more)]), unknown).nodes[0]!.freshness;
    expect(freshness({ state: 'priming' })).toBe('behind');
    expect(freshness({ state: 'priming', reason: 'connection refused' })).toBe('late');
    expect(freshness({ state: 'resyncing' })).toBe('behind');
  });
  it('leads through views', () => {
    const view = { id: 'v1', watch: 'a', prefix: 'k', resources: 1, bytes: 1, subscribers: 2 };
    const of = {
      ...group('shop', []),
      follows: [
        { watch: 'a', view: 'v1', count: 2 },
        { watch: 'a', view: 'others', count: 1 },
      ],
    };
    const others = { views: 3, resources: 1, bytes: 1, subscribers: 1 };
    const { edges } = graphOf(topologyOf([watch('a')], { views: [view], other_views: others, groups: [of] }), unknown);
    expect(edges.map(({ from, to }) => [from, to])).toEqual(
      expect.arrayContaining([
        ['watch a', 'view v1'],
        ['view v1', 'group shop 10.0.0.0/24 sse'],
        ['views', 'group shop 10.0.0.0/24 sse'],
      ]),
    );
  });
});

describe('a view that is configured', () => {
  const views = (...watches: TopologyWatch[]) => {
    const topology = topologyOf(watches);
    return {
      ...topology,
      sources: topology.sources.map((source) => (source.name.startsWith('view of ') ? { ...source, type: 'view' } : source)),
    };
  };
  const viewOf = (name: string, of: string) => watch(name, { source: `view of ${of}` });
  const drawn = (topology: Topology) => {
    const { nodes, edges } = graphOf(topology, unknown);
    return [nodes.map(({ column, title }) => `${column} ${title}`), edges.map(({ from, to }) => `${from} > ${to}`)];
  };

  it('is a view of its watch, and not a source', () => {
    expect(drawn(views(watch('a'), viewOf('v', 'a'), viewOf('w', 'v')))).toEqual([
      ['sources local', 'watches a', 'views v', 'views w'],
      ['source local > watch a', 'watch a > watch v', 'watch v > watch w'],
    ]);
  });
  it('is below the view that it is a part of, with a line beside the column', () => {
    const { placed, lines } = layoutOf(graphOf(views(watch('a'), viewOf('v', 'a'), viewOf('w', 'v')), unknown));
    const [v, w] = ['watch v', 'watch w'].map((id) => placed.find(({ node }) => node.id === id)!);
    expect(w!.x).toBe(v!.x);
    expect(w!.y).toBeGreaterThan(v!.y);
    expect(lines.at(-1)!.d.startsWith(`M${v!.x} `)).toBe(true);
  });
  it('is one of a source if its watch is not shown, or if views are of each other', () => {
    expect(drawn(views(viewOf('v', 'hidden')))[0]).toEqual(['sources view of hidden', 'watches v']);
    expect(drawn(views(viewOf('v', 'w'), viewOf('w', 'v')))[0]).toEqual([
      'sources view of w',
      'sources view of v',
      'watches v',
      'watches w',
    ]);
    expect(drawn(views(viewOf('v', 'v')))[0]).toEqual(['sources view of v', 'watches v']);
  });
  it('is folded with others of its watch', () => {
    const many = Array.from({ length: 20 }, (_, i) => viewOf(`v${String(i).padStart(2, '0')}`, 'a'));
    const [nodes, edges] = drawn(views(watch('a'), ...many));
    expect(nodes!.filter((node) => node.startsWith('sources'))).toEqual(['sources local']);
    expect(nodes).toContain('views and 9 more, all in sync');
    expect(edges).toContain('watch a > watches of view of a');
  });
});

describe('a text that is too long', () => {
  it('is cut to what fits, between characters', () => {
    const measure = (text: string) => [...text].length * 10;
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 10, max: 200 }), (text, width) => {
        const shown = shorten(text, width, measure);
        expect(measure(shown)).toBeLessThanOrEqual(Math.max(width, 10));
        if (measure(text) <= width) expect(shown).toBe(text);
        else expect(text.startsWith(shown.slice(0, -1))).toBe(true);
        expect(() => encodeURIComponent(shown)).not.toThrow(); // as it would with half a character
      }),
    );
  });
});

/** A graph of watches with a number of views each, some of which also have subscribers of their own. */
function withViews(watches: ReadonlyArray<readonly [views: number, direct: boolean]>): Graph {
  const node = (column: Node['column'], id: string): Node => ({ id, column, title: id, detail: '', href: '', freshness: 'fresh' });
  const edge = (from: string, to: string): Edge => ({ from, to, freshness: 'fresh', rate: NaN, label: '' });
  const views = watches.flatMap(([n], i) => Array.from({ length: n }, (_, k) => [`w${i}`, `w${i}v${k}`] as const));
  const direct = watches.flatMap(([, direct], i) => (direct ? [edge(`w${i}`, 'all')] : []));
  return {
    nodes: [
      node('sources', 's'),
      ...watches.map((_, i) => node('watches', `w${i}`)),
      ...views.map(([, view]) => node('views', view)),
      node('subscribers', 'all'),
    ],
    edges: [...watches.map((_, i) => edge('s', `w${i}`)), ...views.flatMap(([of, view]) => [edge(of, view), edge(view, 'all')]), ...direct],
  };
}

const xOf = (placed: readonly Placed[], id: string) => placed.find(({ node }) => node.id === id)!.x;

describe('the layout', () => {
  it('lets no nodes overlap, and keeps all within the drawing', () => {
    fc.assert(
      fc.property(topologies, (topology) => {
        const { placed, height } = layoutOf(graphOf(topology, unknown));
        const byColumn = new Map<number, number[]>();
        for (const { x, y } of placed) byColumn.set(x, [...(byColumn.get(x) ?? []), y]);
        for (const [x, ys] of byColumn) {
          const sorted = ys.toSorted((a, b) => a - b);
          expect(x + size.node).toBeLessThanOrEqual(size.width);
          expect(sorted[0]).toBeGreaterThanOrEqual(size.top);
          expect(sorted.at(-1)! + size.height).toBeLessThanOrEqual(height);
          for (let i = 1; i < sorted.length; i++) expect(sorted[i]! - sorted[i - 1]!).toBeGreaterThanOrEqual(size.height);
        }
      }),
    );
  });
  it('leads lines past a column between its nodes', () => {
    const point = /-?[\d.]+ -?[\d.]+/g;
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.boolean()), { minLength: 1, maxLength: 12 }), (watches) => {
        const { placed, lines } = layoutOf(withViews(watches));
        for (const { edge, d } of lines) {
          const passed = placed.filter(({ x }) => x > xOf(placed, edge.from) && x < xOf(placed, edge.to));
          const ends = d.match(point)!.map((pair) => pair.split(' ').map(Number));
          for (const { x, y } of passed) {
            const over = ends.filter(([at]) => at === x || at === x + size.node);
            expect(over.length).toBeGreaterThanOrEqual(2); // where it enters the column, and where it leaves it
            for (const [, at] of over) expect(at! < y || at! > y + size.height).toBe(true);
          }
        }
      }),
    );
  });
  it('draws edges as thick as their rate, on a logarithmic scale', () => {
    expect([NaN, 0, 1, 10, 100, 1e9].map(thickness)).toEqual([1.5, 1.5, 2, 3.5, 5, 8]);
  });
});

describe('the next attempts', () => {
  it('are the earliest of each source that is tried again', () => {
    const upstream = (source: string, next?: string) => ({ source, upstream: next ? { next_attempt_at: next } : {} }) as Watch;
    const found = nextAttempts([
      upstream('a', '2026-01-02T03:00:09Z'),
      upstream('a', '2026-01-02T03:00:05Z'),
      upstream('a'),
      upstream('b'),
    ]);
    expect([...found]).toEqual([['a', began + 5000]]);
  });
});

describe('the page', () => {
  let topology: Topology;
  let asked: string[];
  const next = '2026-01-02T03:00:07Z';

  function answers(path: string): unknown {
    if (path === '/v1/client') return { instance: 'one', naming: 'direct', operator: true };
    if (path === '/v1/watches') return { instance: 'one', watches: [{ source: 'local', upstream: { next_attempt_at: next } }] };
    return topology;
  }

  beforeEach(() => {
    vi.useFakeTimers({ now: began });
    asked = [];
    vi.stubGlobal('fetch', async (url: URL) => {
      asked.push(url.pathname + url.search);
      return Response.json(answers(url.pathname));
    });
  });
  afterEach(() => {
    cleanup();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  async function show(): Promise<void> {
    render(<TopologyPage />);
    await act(() => vi.advanceTimersByTimeAsync(0));
    await act(() => vi.advanceTimersByTimeAsync(0));
  }

  it('counts what is late, and links to the page that says since when and why', async () => {
    topology = topologyOf([watch('a', { state: 'stale', since: '2026-01-02T02:59:00Z', reason: 'connection refused' }), watch('b')]);
    await show();
    expect(screen.getByText('In sync', { selector: 'dt' }).nextSibling?.textContent).toBe('1 of 2 watches since when');
    expect(screen.getByRole('link', { name: 'since when' }).getAttribute('href')).toBe('#/health');
  });
  it('says when a source that is not connected is tried again', async () => {
    topology = topologyOf([watch('a', { state: 'stale', reason: 'connection refused' })]);
    await show();
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(screen.getByRole('link', { name: /^local/ }).textContent).toContain('0 of 1 connected · next try in 7 s');
  });
  it('has its nodes as links in reading order, and says the same as a table', async () => {
    topology = topologyOf([watch('a')], { groups: [group('shop', ['a'])], all: figures(1) });
    await show();
    const links = within(screen.getByRole('group', { name: /way of the data/ })).getAllByRole('link');
    expect(links.map((link) => link.getAttribute('href'))).toEqual([
      '#/health',
      '#/watches/a',
      '#/subscribers?application=shop&network=10.0.0.0%2F24&transport=sse',
    ]);
    const rows = screen.getByRole('table', { hidden: true }).querySelectorAll('tbody tr');
    expect([...rows].map(({ textContent }) => textContent)).toEqual([
      'localain syncchanges per second not known yet',
      'ashop · 10.0.0.0/24in sync1 subscriber',
    ]);
  });
  it('shows the type of a source, in the diagram and in the table', async () => {
    topology = topologyOf([watch('a')]);
    topology = { ...topology, sources: [{ ...topology.sources[0]!, type: 'etcd' }] };
    await show();
    expect(screen.getByRole('link', { name: /^local/ }).textContent).toBe('local etcd 1 of 1 connected');
    const heads = screen.getByRole('table', { hidden: true }).querySelectorAll('tbody th');
    expect([...heads].map(({ textContent }) => textContent)).toEqual(['local (etcd)']);
  });
  it('groups the subscribers by principal, as the URL says', async () => {
    location.hash = '#/';
    topology = topologyOf([watch('a')]);
    await show();
    topology = {
      ...topology,
      groups: [{ principal: 'ann (https://idp.example.com)', ...figures(2), follows: [{ watch: 'a', count: 2 }] }],
    };
    fireEvent.change(screen.getByRole('combobox', { name: 'Subscribers by' }), { target: { value: 'principal' } });
    expect(location.hash).toBe('#/?group=principal');
    await act(() => vi.advanceTimersByTimeAsync(0));
    expect(asked.at(-1)).toBe('/v1/topology?group=principal');
    const ann = screen.getByRole('link', { name: /^ann/ });
    expect(ann.textContent).toContain('2 subscribers');
    expect(ann.getAttribute('href')).toBe('#/subscribers?principal=ann+%28https%3A%2F%2Fidp.example.com%29');
    fireEvent.change(screen.getByRole('combobox', { name: 'Subscribers by' }), { target: { value: 'application' } });
    expect(location.hash).toBe('#/');
  });
  it('shows the figures of the edges of the node that has the focus', async () => {
    // Of an instance of its own: the page remembers counters.
    topology = topologyOf([watch('a')], { groups: [group('shop', ['a'])], all: figures(1), instance: 'counted' });
    await show();
    topology = { ...topology, watches: [watch('a', { changes: 110 })] };
    await act(() => vi.advanceTimersByTimeAsync(1000));
    const source = screen.getByRole('link', { name: /^local/ });
    expect(source.textContent).toContain('1 of 1 connected');
    fireEvent.focus(screen.getByRole('link', { name: /^a / }));
    expect(source.textContent).toContain('10 changes/s');
  });
});
