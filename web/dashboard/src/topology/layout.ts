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

// The height that lines take which lead past the nodes of a column.
const laneHeight = 18;

/** A part of a column: a node, or a lane for the lines from one that lead past the column. */
interface Slot {
  readonly id: string;
  readonly node?: Node;
  readonly height: number;
}

/** What is placed so far, from the left. */
interface Places {
  readonly used: readonly Column[];
  readonly columnOf: ReadonlyMap<string, number>;
  readonly edges: readonly Edge[];
  readonly placed: Map<string, Placed>;
  /** The middle of each lane by laneId. */
  readonly lanes: Map<string, number>;
}

/** Places the nodes in columns, each ordered by what leads to it, so that few edges cross. */
export function layoutOf({ nodes, edges }: Graph): Layout {
  const used = columns.filter((column) => nodes.some((node) => node.column === column));
  const columnOf = new Map(nodes.map(({ id, column }) => [id, used.indexOf(column)]));
  const places: Places = { used, columnOf, edges, placed: new Map(), lanes: new Map() };
  const slots = used.map((column, i) => [
    ...nodes.filter((node) => node.column === column).map((node) => ({ id: node.id, node, height: size.height + size.gap })),
    ...lanesPast(i, places),
  ]);
  const height = size.top + Math.max(size.height + size.gap, ...slots.map(heightOf));
  for (const [i, all] of slots.entries()) place(i, order(all, i, places), height, places);
  return {
    placed: [...places.placed.values()],
    lines: edges.flatMap((edge) => line(edge, places)),
    heads: used.map((column, i) => [column, xOf(i, used.length)]),
    height,
  };
}

const heightOf = (slots: readonly Slot[]) => slots.reduce((all, { height }) => all + height, 0);

const laneId = (from: string, column: number) => `${column} ${from}`;

// One lane for all edges from a node, which part after it.
function lanesPast(column: number, { edges, columnOf }: Places): Slot[] {
  const past = edges.filter(({ from, to }) => columnOf.get(from)! < column && columnOf.get(to)! > column);
  return [...new Set(past.map(({ from }) => from))].map((id) => ({ id, height: laneHeight }));
}

function place(i: number, slots: readonly Slot[], height: number, { used, placed, lanes }: Places): void {
  const stretch = (height - size.top) / heightOf(slots);
  let y = size.top;
  for (const slot of slots) {
    const middle = y + (stretch * slot.height) / 2;
    if (slot.node) placed.set(slot.id, { node: slot.node, x: xOf(i, used.length), y: middle - size.height / 2 });
    else lanes.set(laneId(slot.id, i), middle);
    y += stretch * slot.height;
  }
}

// How far a line between two nodes of a column leaves it, from a view to a view of it.
const loop = 48;

const xOf = (i: number, of: number) => (of > 1 ? (i * (size.width - size.node)) / (of - 1) : 0);

// Late nodes keep their place at the top.
function order(slots: readonly Slot[], column: number, places: Places): Slot[] {
  const middle = new Map(
    slots.map((slot, i) => [slot, slot.node ? (middleOf(slot.id, column, places) ?? i) : leaves(slot.id, column, places)]),
  );
  const late = ({ node }: Slot) => (node?.freshness === 'late' ? 0 : 1);
  return slots.toSorted((a, b) => late(a) - late(b) || middle.get(a)! - middle.get(b)!);
}

const middleOf = (id: string, column: number, places: Places) => center(id, column, places) ?? beside(id, column, places);

function center(id: string, column: number, places: Places): number | undefined {
  const ys = places.edges.flatMap(({ from, to }) => (to === id && places.placed.has(from) ? [leaves(from, column, places)] : []));
  return ys.length > 0 ? ys.reduce((all, y) => all + y, 0) / ys.length : undefined;
}

// A view of a view is below it.
function beside(id: string, column: number, places: Places): number | undefined {
  const edge = places.edges.find(({ to }) => to === id);
  const parent = edge && center(edge.from, column, places);
  return parent === undefined ? undefined : parent + 0.5;
}

// The place from which the lines of a node reach a column: it, or its last lane before.
function leaves(from: string, column: number, { lanes, placed }: Places): number {
  return lanes.get(laneId(from, column - 1)) ?? placed.get(from)!.y + size.height / 2;
}

function loopOf(from: Placed, to: Placed): string {
  const [y1, y2] = [from.y + size.height / 2, to.y + size.height / 2];
  return `M${from.x} ${y1}C${from.x - loop} ${y1} ${to.x - loop} ${y2} ${to.x} ${y2}`;
}

type Point = readonly [x: number, y: number];

function line(edge: Edge, places: Places): Line[] {
  const from = places.placed.get(edge.from);
  const to = places.placed.get(edge.to);
  if (!from || !to) return [];
  const start: Point = [from.x + size.node, from.y + size.height / 2];
  const end: Point = [to.x, to.y + size.height / 2];
  const width = thickness(edge.rate);
  if (from.x === to.x) return [{ edge, d: loopOf(from, to), width }];
  return [{ edge, d: `M${start.join(' ')}${way(start, end, edge, places)}`, width }];
}

// Past each column between the two nodes, the line is straight.
function way(start: Point, end: Point, edge: Edge, { used, columnOf, lanes }: Places): string {
  let d = '';
  let at = start;
  for (let i = columnOf.get(edge.from)! + 1; i < columnOf.get(edge.to)!; i++) {
    const x = xOf(i, used.length);
    const y = lanes.get(laneId(edge.from, i))!;
    d += `${curve(at, [x, y])}L${x + size.node} ${y}`;
    at = [x + size.node, y];
  }
  return d + curve(at, end);
}

function curve([x1, y1]: Point, [x2, y2]: Point): string {
  const bend = (x2 - x1) / 2;
  return `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** The thickness of an edge: one more for each factor of ten of its rate. */
export const thickness = (rate: number): number => (rate > 0 ? Math.min(8, Math.max(1.5, 2 + 1.5 * Math.log10(rate))) : 1.5);
