import type { Topology, TopologyEdge, TopologyGroup, TopologyWatch } from '@watchtide/protocol';
import { href } from '../app/route';
import { stateText } from '../overview/order';
import { duration } from '../text/duration';
import { count, rate } from '../text/number';
import type { NextAttempts } from './attempts';

/** How fresh data is. late: it is not what the upstream has. behind: it is on its way. */
export type Freshness = 'fresh' | 'behind' | 'late';

export type Column = 'sources' | 'watches' | 'views' | 'subscribers';

export interface Node {
  readonly id: string;
  readonly column: Column;
  readonly title: string;
  /** Of a source, as in the configuration: `etcd`. */
  readonly type?: string | undefined;
  readonly detail: string;
  readonly href: string;
  readonly freshness: Freshness;
}

export interface Edge {
  readonly from: string;
  readonly to: string;
  readonly freshness: Freshness;
  /** Per second; NaN if unknown. */
  readonly rate: number;
  /** The figures in words. */
  readonly label: string;
}

export interface Graph {
  readonly nodes: readonly Node[];
  readonly edges: readonly Edge[];
}

/** Rates per second by counter, see counters. */
export type RateOf = (counter: string) => number;

// More watches in sync than this are folded; late ones never are.
const maxWatches = 12;
const maxViews = 6;
const maxGroups = 8;

/** Returns the counters whose rates the graph shows. */
export function counters({ watches, groups, others }: Topology): Map<string, number> {
  const all = new Map(watches.map(({ name, changes }) => [`watch ${name}`, changes]));
  for (const group of groups) all.set(`group ${groupId(group)}`, group.events);
  if (others) all.set(othersId(groups), others.events);
  return all;
}

// The others are other ones if the subscribers are grouped by something else.
const othersId = ([first]: readonly TopologyGroup[]) => `others by ${first ? commonOf(first).map(([name]) => name) : ''}`;

/** Draws up the graph: late watches first, and what is folded in one node. */
export function graphOf(topology: Topology, rateOf: RateOf, next: NextAttempts = new Map()): Graph {
  const fold = foldWatches(topology);
  const views = viewsOf(topology, fold);
  const groups = groupsOf(topology, rateOf);
  const shown = { fold, views, groups };
  return {
    nodes: [
      ...sourceNodes(topology, fold, next),
      ...fold.nodes.map(({ node, watches }) => ({ ...node, detail: watchDetail(watches, rateOf) })),
      ...views.nodes,
      ...groups.map(({ node }) => node),
    ],
    edges: [...sourceEdges(fold, rateOf), ...viewEdges(topology, shown, rateOf), ...groupEdges(shown)],
  };
}

interface Folded {
  readonly node: Node;
  readonly source: string;
  /** The watch of which they are views; '' for watches of a source. */
  readonly viewOf: string;
  readonly watches: readonly TopologyWatch[];
}

interface Fold {
  readonly nodes: readonly Folded[];
  /** The node of each watch. */
  readonly of: ReadonlyMap<string, Folded>;
}

// A watch that has a reason not to be in sync waits for its upstream, and not only for a snapshot.
export const freshnessOf = ({ state, reason }: TopologyWatch): Freshness => {
  if (state === 'in_sync') return 'fresh';
  return state === 'stale' || reason ? 'late' : 'behind';
};

const urgency: Readonly<Record<Freshness, number>> = { late: 0, behind: 1, fresh: 2 };

/** The most urgent of several. */
export const worst = (all: readonly Freshness[]): Freshness => all.reduce((a, b) => (urgency[b] < urgency[a] ? b : a), 'fresh');

function foldWatches(topology: Topology): Fold {
  const { watches } = topology;
  const parents = parentsOf(topology);
  const ordered = watches.toSorted(
    (a, b) => urgency[freshnessOf(a)] - urgency[freshnessOf(b)] || b.subscribers - a.subscribers || a.name.localeCompare(b.name),
  );
  const fits = watches.length <= maxWatches;
  const shown = ordered.filter((watch, i) => fits || i < maxWatches || freshnessOf(watch) !== 'fresh');
  const rest = groupBy(
    ordered.filter((watch) => !shown.includes(watch)),
    ({ source }) => source,
  );
  const nodes = [...shown.map((watch) => single(watch)), ...[...rest].map(([source, folded]) => several(source, folded))].map((folded) =>
    inColumn(folded, parents.get(folded.watches[0]!.name) ?? ''),
  );
  return { nodes, of: new Map(nodes.flatMap((node) => node.watches.map(({ name }) => [name, node]))) };
}

const prefix = 'view of ';

// The watch of which each configured view is one, if it leads to a watch of a source.
export function parentsOf({ sources, watches }: Topology): Map<string, string> {
  const views = new Set(sources.flatMap(({ name, type }) => (type === 'view' && name.startsWith(prefix) ? [name] : [])));
  const all = new Map(watches.map(({ name, source }) => [name, views.has(source) ? source.slice(prefix.length) : '']));
  const rooted = (name: string) => {
    for (let i = 0, at: string | undefined = name; i <= all.size && at !== undefined; i++) {
      if (all.get(at) === '') return true;
      at = all.get(at);
    }
    return false;
  };
  return new Map([...all].filter(([name]) => rooted(name)));
}

const inColumn = (folded: Omit<Folded, 'viewOf'>, viewOf: string): Folded => ({
  ...folded,
  viewOf,
  node: { ...folded.node, column: viewOf ? 'views' : 'watches' },
});

const single = (watch: TopologyWatch): Omit<Folded, 'viewOf'> => ({
  node: {
    id: `watch ${watch.name}`,
    column: 'watches',
    title: watch.name,
    detail: '',
    href: href('watches', watch.name),
    freshness: freshnessOf(watch),
  },
  source: watch.source,
  watches: [watch],
});

const several = (source: string, watches: readonly TopologyWatch[]): Omit<Folded, 'viewOf'> => ({
  node: {
    id: `watches of ${source}`,
    column: 'watches',
    title: `and ${count(watches.length)} more, all in sync`,
    detail: '',
    href: href('watches', '', new URLSearchParams({ filter: source })),
    freshness: 'fresh',
  },
  source,
  watches,
});

function watchDetail(watches: readonly TopologyWatch[], rateOf: RateOf): string {
  const [first] = watches;
  const state = watches.length === 1 && first!.state !== 'in_sync' ? `${stateText(first!.state)} · ` : '';
  return `${state}${count(sum(watches.map(({ resources }) => resources)))} resources${perSecond(watchRate(watches, rateOf), 'changes')}`;
}

const watchRate = (watches: readonly TopologyWatch[], rateOf: RateOf) => sum(watches.map(({ name }) => rateOf(`watch ${name}`)));

const perSecond = (n: number, what: string) => (Number.isNaN(n) ? '' : ` · ${rate(n)} ${what}/s`);

// What is in the configuration as a view is shown as one, and not as a source.
const sourceNodes = ({ sources, watches }: Topology, { nodes }: Fold, next: NextAttempts): Node[] =>
  sources
    .filter(({ name }) => nodes.some(({ source, viewOf }) => source === name && !viewOf))
    .map(({ name, type, connected, watches: all }) => ({
      id: `source ${name}`,
      column: 'sources',
      title: name || 'a source without a name',
      type: type === 'view' ? undefined : type, // its name says so
      detail: `${count(connected)} of ${count(all)} connected${connected < all ? attempt(next.get(name)) : ''}`,
      href: href('health'),
      freshness: worst(watches.filter(({ source }) => source === name).map(freshnessOf)),
    }));

const attempt = (at: number | undefined) => (at === undefined ? '' : ` · next try in ${duration(Math.max(0, at - Date.now()))}`);

const sourceEdges = ({ nodes, of }: Fold, rateOf: RateOf): Edge[] =>
  nodes.map(({ node, source, viewOf, watches }) => {
    const perSec = watchRate(watches, rateOf);
    return {
      from: viewOf ? of.get(viewOf)!.node.id : `source ${source}`,
      to: node.id,
      freshness: node.freshness,
      rate: perSec,
      label: changes(perSec),
    };
  });

const changes = (n: number) => (Number.isNaN(n) ? 'changes per second not known yet' : `${rate(n)} changes/s`);

interface Views {
  readonly nodes: readonly Node[];
  /** The id of the node of a view; undefined: it is folded. */
  has(id: string): boolean;
}

const foldedViews = 'views';

function viewsOf({ views, other_views: others }: Topology, fold: Fold): Views {
  const shown = views.slice(0, maxViews);
  const nodes: Node[] = shown.map((view) => ({
    id: `view ${view.id}`,
    column: 'views',
    title: `${view.watch}: ${part(view)}`,
    detail: `${count(view.resources)} resources · ${people(view.subscribers)}`,
    href: href('subscribers', '', new URLSearchParams({ watch: view.watch })),
    freshness: fold.of.get(view.watch)?.node.freshness ?? 'fresh',
  }));
  const rest = views.slice(maxViews);
  const more = rest.length + (others?.views ?? 0);
  if (more > 0) {
    nodes.push({
      id: foldedViews,
      column: 'views',
      title: `and ${count(more)} more views`,
      detail: people(sum(rest.map(({ subscribers }) => subscribers)) + (others?.subscribers ?? 0)),
      href: href('subscribers'),
      freshness: 'fresh',
    });
  }
  const ids = new Set(shown.map(({ id }) => id));
  return { nodes, has: (id) => ids.has(id) };
}

const part = ({ prefix, labels, filter, fields }: Topology['views'][number]): string =>
  [prefix && `${prefix}…`, labels, filter, fields && `fields ${fields}`].filter(Boolean).join(' · ') || 'a part of it';

const people = (n: number) => `${count(n)} ${n === 1 ? 'subscriber' : 'subscribers'}`;

interface Group {
  readonly node: Node;
  readonly follows: readonly TopologyEdge[];
  readonly rate: number;
}

export const groupId = (group: TopologyGroup): string =>
  commonOf(group)
    .map(([, text]) => text)
    .join(' ');

// What the subscribers of a group have in common, as the page Subscribers selects them.
const commonOf = ({ application, network, transport, principal, client_id }: TopologyGroup): [name: string, text: string][] =>
  Object.entries({ application, network, transport, principal, client_id }).filter((entry): entry is [string, string] => Boolean(entry[1]));

// A group is behind if one of its subscribers is by more than this many changes.
const behind = 1000;

function groupsOf({ groups, others }: Topology, rateOf: RateOf): Group[] {
  const shown = groups.slice(0, maxGroups).map((group) => groupNode(group, rateOf(`group ${groupId(group)}`)));
  const rest = groups.slice(maxGroups);
  const more = rest.length + (others?.groups ?? 0);
  if (more === 0) return shown;
  const all = [...rest, ...(others ? [others] : [])];
  const node: Node = {
    id: 'groups',
    column: 'subscribers',
    title: `and ${count(more)} more groups`,
    detail: people(sum(all.map((group) => group.count))),
    href: href('subscribers'),
    freshness: all.some(({ lag }) => lag.max > behind) ? 'behind' : 'fresh',
  };
  const eventRate = sum([...rest.map((group) => rateOf(`group ${groupId(group)}`)), ...(others ? [rateOf(othersId(groups))] : [])]);
  return [...shown, { node, follows: all.flatMap(({ follows }) => follows), rate: eventRate }];
}

function groupNode(group: TopologyGroup, eventRate: number): Group {
  const { transport, lag } = group;
  const common = commonOf(group);
  const names = common.flatMap(([name, text]) => (name === 'transport' ? [] : [text]));
  const node: Node = {
    id: `group ${groupId(group)}`,
    column: 'subscribers',
    title: names.join(' · '),
    detail: `${people(group.count)}${transport ? ` · ${transport}` : ''}${lag.max > 0 ? ` · lag ${count(lag.max)}` : ''}`,
    href: href('subscribers', '', new URLSearchParams(common)),
    freshness: lag.max > behind ? 'behind' : 'fresh',
  };
  return { node, follows: group.follows, rate: eventRate };
}

interface Shown {
  readonly fold: Fold;
  readonly views: Views;
  readonly groups: readonly Group[];
}

const viewNode = (views: Views, id: string) => (views.has(id) ? `view ${id}` : foldedViews);

// From the watches to their views.
function viewEdges(topology: Topology, { fold, views, groups }: Shown, rateOf: RateOf): Edge[] {
  const all = new Map<string, Edge>();
  const add = (watch: string, id: string) => {
    const folded = fold.of.get(watch);
    if (!folded) return;
    const to = viewNode(views, id);
    const perSec = watchRate(folded.watches, rateOf);
    all.set(`${folded.node.id}>${to}`, {
      from: folded.node.id,
      to,
      freshness: folded.node.freshness,
      rate: perSec,
      label: changes(perSec),
    });
  };
  for (const { watch, id } of topology.views) add(watch, id);
  for (const { watch, view } of groups.flatMap(({ follows }) => follows)) if (view) add(watch, view);
  return [...all.values()].filter(({ to }) => views.nodes.some(({ id }) => id === to));
}

// From the watches, or their views, to the groups of subscribers.
function groupEdges({ fold, views, groups }: Shown): Edge[] {
  return groups.flatMap(({ node, follows, rate: eventRate }) => {
    const known = follows.filter(({ watch }) => fold.of.has(watch));
    const all = sum(known.map((edge) => edge.count));
    const by = groupBy(known, ({ watch, view }) => (view ? viewNode(views, view) : fold.of.get(watch)!.node.id));
    return [...by].map(([from, edges]) => {
      const subscribers = sum(edges.map((edge) => edge.count));
      const freshness = worst([node.freshness, ...edges.map(({ watch }) => fold.of.get(watch)!.node.freshness)]);
      const share = (eventRate * subscribers) / all;
      return { from, to: node.id, freshness, rate: share, label: `${people(subscribers)}${perSecond(share, 'events')}` };
    });
  });
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, n) => all + n, 0);

function groupBy<T>(all: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
  return groups;
}
