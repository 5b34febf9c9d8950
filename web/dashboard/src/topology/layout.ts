import type { Column, Edge, Graph, Node } from './graph';

export const columns: readonly Column[] = ['sources', 'watches', 'views', 'subscribers'];

/** The size of the drawing's parts, in its own units. */
export const size = { width: 1200, node: 228, height: 46, gap: 14, top: 30 };

export interface Placed {
  readonly node: Node;
  readonly x: number;
  readonly y: number;
}

export interface Line {
  readonly edge: Edge;
  /** The path, in the notation of SVG. */
  readonly d: string;
  readonly width: number;
}

export interface Layout {
  readonly placed: readonly Placed[];
  readonly lines: readonly Line[];
  readonly heads: ReadonlyArray<readonly [column: Column, x: number]>;
  readonly height: number;
}

/** Places the nodes in columns, each ordered by what leads to it, so that few edges cross. */
export function layoutOf({ nodes, edges }: Graph): Layout {
  const used = columns.filter((column) => nodes.some((node) => node.column === column));
  const most = Math.max(1, ...used.map((column) => nodes.filter((node) => node.column === column).length));
  const height = size.top + most * (size.height + size.gap);
  const placed = new Map<string, Placed>();
  for (const [i, column] of used.entries()) {
    const ordered = order(
      nodes.filter((node) => node.column === column),
      edges,
      placed,
    );
    const free = (height - size.top) / ordered.length;
    for (const [k, node] of ordered.entries()) {
      placed.set(node.id, { node, x: xOf(i, used.length), y: size.top + free * (k + 0.5) - size.height / 2 });
    }
  }
  return {
    placed: [...placed.values()],
    lines: edges.flatMap((edge) => line(edge, placed)),
    heads: used.map((column, i) => [column, xOf(i, used.length)]),
    height,
  };
}

// How far a line between two nodes of a column leaves it, from a view to a view of it.
const loop = 48;

const xOf = (i: number, of: number) => (of > 1 ? (i * (size.width - size.node)) / (of - 1) : 0);

// Late nodes keep their place at the top.
function order(nodes: readonly Node[], edges: readonly Edge[], placed: ReadonlyMap<string, Placed>): Node[] {
  const middle = new Map(nodes.map((node, i) => [node.id, center(node, edges, placed) ?? beside(node, edges, placed) ?? i]));
  const late = ({ freshness }: Node) => (freshness === 'late' ? 0 : 1);
  return nodes.toSorted((a, b) => late(a) - late(b) || middle.get(a.id)! - middle.get(b.id)!);
}

function center(node: Node, edges: readonly Edge[], placed: ReadonlyMap<string, Placed>): number | undefined {
  const ys = edges.flatMap(({ from, to }) => (to === node.id && placed.has(from) ? [placed.get(from)!.y] : []));
  return ys.length > 0 ? ys.reduce((all, y) => all + y, 0) / ys.length : undefined;
}

// A view of a view is below it.
function beside(node: Node, edges: readonly Edge[], placed: ReadonlyMap<string, Placed>): number | undefined {
  const edge = edges.find(({ to }) => to === node.id);
  const parent = edge && center({ ...node, id: edge.from }, edges, placed);
  return parent === undefined ? undefined : parent + 0.5;
}

function line(edge: Edge, placed: ReadonlyMap<string, Placed>): Line[] {
  const from = placed.get(edge.from);
  const to = placed.get(edge.to);
  if (!from || !to) return [];
  const x1 = from.x + size.node;
  const y1 = from.y + size.height / 2;
  const y2 = to.y + size.height / 2;
  const width = thickness(edge.rate);
  if (from.x === to.x) return [{ edge, d: `M${from.x} ${y1}C${from.x - loop} ${y1} ${to.x - loop} ${y2} ${to.x} ${y2}`, width }];
  const bend = (to.x - x1) / 2;
  return [{ edge, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${to.x - bend} ${y2} ${to.x} ${y2}`, width }];
}

/** The thickness of an edge: one more for each factor of ten of its rate. */
export const thickness = (rate: number): number => (rate > 0 ? Math.min(8, Math.max(1.5, 2 + 1.5 * Math.log10(rate))) : 1.5);
