import { type ReactNode, useMemo, useState } from 'react';
import { visible } from '../text/visible';
import type { Graph } from './graph';
import { type Layout, type Line, layoutOf, type Placed, size } from './layout';
import { shorten, widthOf } from './shortened';

/** Draws the graph in columns. Nodes are links, in reading order. */
export function Diagram({ graph }: { graph: Graph }) {
  const layout = useMemo(() => layoutOf(graph), [graph]);
  const [chosen, choose] = useState('');
  const near = (line: Line) => line.edge.from === chosen || line.edge.to === chosen;
  return (
    <div className="card diagram">
      <svg viewBox={`0 0 ${size.width} ${layout.height}`} role="group" aria-label="The way of the data; the same as a table below">
        <Heads layout={layout} />
        <g aria-hidden="true" data-chosen={chosen !== '' || undefined}>
          {layout.lines.map((line) => (
            <path
              key={`${line.edge.from}>${line.edge.to}`}
              className="edge"
              data-freshness={line.edge.freshness}
              data-near={near(line) || undefined}
              d={line.d}
              strokeWidth={line.width}
            >
              <title>{line.edge.label}</title>
            </path>
          ))}
        </g>
        {layout.placed.map((placed) => (
          <NodeLink
            key={placed.node.id}
            placed={placed}
            label={labelOf(layout.lines.filter(near), placed.node.id, chosen)}
            onChoose={choose}
          />
        ))}
      </svg>
    </div>
  );
}

function Heads({ layout }: { layout: Layout }) {
  return (
    <g className="heads">
      {layout.heads.map(([column, x]) => (
        <text key={column} x={x} y={16}>
          {column[0]!.toUpperCase() + column.slice(1)}
        </text>
      ))}
    </g>
  );
}

// The figures of the edge between a node and the one that the user points at; empty if there is none.
const labelOf = (near: readonly Line[], id: string, chosen: string) =>
  id === chosen ? '' : (near.find(({ edge }) => edge.from === id || edge.to === id)?.edge.label ?? '');

interface Linked {
  readonly placed: Placed;
  readonly label: string;
  readonly onChoose: (id: string) => void;
}

function NodeLink({ placed: { node, x, y }, label, onChoose }: Linked) {
  return (
    <a
      href={node.href}
      className="node"
      data-freshness={node.freshness}
      data-node={node.id}
      onMouseEnter={() => onChoose(node.id)}
      onMouseLeave={() => onChoose('')}
      onFocus={() => onChoose(node.id)}
      onBlur={() => onChoose('')}
    >
      <g>
        <rect x={x} y={y} width={size.node} height={size.height} rx={8} />
        <rect className="mark" x={x} y={y} width={6} height={size.height} rx={3} />
        <text>
          <Cut x={x + 16} y={y + 19} className="title" text={node.title} room={node.type ? room - of(node.type, 'detail') - 8 : room} />{' '}
          {node.type && (
            <tspan x={x + size.node - 10} y={y + 19} className="type">
              {node.type}{' '}
            </tspan>
          )}
          <Cut x={x + 16} y={y + 36} className={label ? 'detail of-edge' : 'detail'} text={label || node.detail} room={room} />
        </text>
      </g>
    </a>
  );
}

const room = size.node - 26; // for text in a node

// As in the style.
const fonts = { title: '600 14px', detail: '11.5px', 'detail of-edge': '700 11.5px' };

type Style = keyof typeof fonts;

const of = (text: string, style: Style): number => widthOf(text, `${fonts[style]} system-ui, sans-serif`) ?? text.length * 7.5;

interface Shortened {
  readonly x: number;
  readonly y: number;
  readonly className: Style;
  readonly text: string;
  readonly room: number;
}

// SVG does not shorten text. The tooltip has all of it.
function Cut({ text: raw, room, ...rest }: Shortened): ReactNode {
  const text = visible(raw);
  const shown = shorten(text, room, (text) => of(text, rest.className));
  return (
    <tspan {...rest}>
      {shown}
      {shown !== text && <title>{text}</title>}
    </tspan>
  );
}
