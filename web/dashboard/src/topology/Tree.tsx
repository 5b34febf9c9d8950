import type { Edge, Graph, Node } from './graph';
import { thickness } from './layout';

// A phone shows the largest branches to subscribers. Late ones are never left out.
const maxBranches = 3;

/** The graph from top to bottom, for a page that is too narrow for columns. */
export function Tree({ graph }: { graph: Graph }) {
  const sources = graph.nodes.filter(({ column }) => column === 'sources').toSorted(lateFirst);
  return (
    <div className="card tree">
      <Level graph={graph} nodes={sources.map((node) => [node, undefined] as const)} />
    </div>
  );
}

const lateFirst = (a: Node, b: Node) => Number(b.freshness === 'late') - Number(a.freshness === 'late');

type Branch = readonly [node: Node, edge: Edge | undefined];

function Level({ graph, nodes }: { graph: Graph; nodes: readonly Branch[] }) {
  const shown = nodes.filter(([node], i) => i < maxBranches || node.column !== 'subscribers' || node.freshness !== 'fresh');
  return (
    <ul>
      {shown.map(([node, edge]) => (
        <li key={node.id} data-freshness={edge?.freshness ?? node.freshness} data-thick={edge && Math.round(thickness(edge.rate))}>
          <a href={node.href} className="branch" data-node={node.id}>
            <strong>{node.title}</strong> {node.type && <span className="type">{node.type}</span>}{' '}
            <span className="soft">{edge && node.column === 'subscribers' ? edge.label : node.detail}</span>
            {node.freshness !== 'fresh' && <span className="flag">{node.freshness}</span>}
          </a>
          <Next graph={graph} node={node} />
        </li>
      ))}
      {shown.length < nodes.length && (
        <li className="soft more">
          and {nodes.length - shown.length} more {nodes.length - shown.length === 1 ? 'group' : 'groups'}
        </li>
      )}
    </ul>
  );
}

function Next({ graph, node }: { graph: Graph; node: Node }) {
  const nodes = branchesOf(graph, node);
  return nodes.length > 0 && <Level graph={graph} nodes={nodes} />;
}

// The views before the subscribers of the whole watch, the largest of which come first.
function branchesOf({ nodes, edges }: Graph, { id }: Node): Branch[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return edges
    .filter(({ from, to }) => from === id && byId.has(to))
    .toSorted((a, b) => Number(b.rate > 0 && b.rate) - Number(a.rate > 0 && a.rate))
    .map((edge): Branch => [byId.get(edge.to)!, edge])
    .toSorted(([a], [b]) => Number(a.column === 'subscribers') - Number(b.column === 'subscribers'));
}
