import type { Edge, Graph, Node } from './graph';
import { thickness } from './layout';

/** The graph from top to bottom, for a page that is too narrow for columns. */
export function Tree({ graph }: { graph: Graph }) {
  const sources = graph.nodes.filter(({ column }) => column === 'sources');
  return (
    <div className="card tree">
      <Level graph={graph} nodes={sources.map((node) => [node, undefined] as const)} />
    </div>
  );
}

function Level({ graph, nodes }: { graph: Graph; nodes: ReadonlyArray<readonly [Node, Edge | undefined]> }) {
  return (
    <ul>
      {nodes.map(([node, edge]) => (
        <li key={node.id} data-freshness={edge?.freshness ?? node.freshness} data-thick={edge && Math.round(thickness(edge.rate))}>
          <a href={node.href} className="branch" data-node={node.id}>
            <strong>{node.title}</strong> <span className="soft">{node.detail}</span>
            {node.freshness !== 'fresh' && <span className="flag">{node.freshness}</span>}
          </a>
          {next(graph, node).length > 0 && <Level graph={graph} nodes={next(graph, node)} />}
        </li>
      ))}
    </ul>
  );
}

const next = ({ nodes, edges }: Graph, { id }: Node) =>
  edges
    .filter(({ from }) => from === id)
    .flatMap((edge) => {
      const node = nodes.find((one) => one.id === edge.to);
      return node ? [[node, edge] as const] : [];
    });
