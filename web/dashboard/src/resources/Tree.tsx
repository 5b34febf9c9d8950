import { type KeyboardEvent, useId, useRef, useState } from 'react';
import { count } from '../text/number';
import { ValueText } from '../text/KeyText';
import { brief } from './brief';
import { useFlash } from './Cell';
import { type Folds, type Line, linesOf, longText } from './lines';

/** Shows a value as a tree with branches that fold. */
export function Tree({ value, label }: { value: unknown; label: string }) {
  const [folds, setFolds] = useState<Folds>({ open: new Map(), whole: new Set() });
  const [chosen, setChosen] = useState('');
  const id = useId();
  const tree = useRef<HTMLDivElement>(null);
  const lines = linesOf(value, folds);
  const index = Math.max(
    0,
    lines.findIndex((line) => line.id === chosen),
  );

  const fold = (line: Line, open: boolean) => setFolds((folds) => ({ ...folds, open: new Map(folds.open).set(line.id, open) }));
  const act = (line: Line) => {
    setChosen(line.id);
    if (line.more > 0) setFolds((folds) => ({ ...folds, whole: new Set(folds.whole).add(line.parent ?? '') }));
    else if (line.open !== undefined) fold(line, !line.open);
  };
  const moveTo = (to: number) => {
    const line = lines[Math.max(0, Math.min(to, lines.length - 1))];
    if (!line) return;
    setChosen(line.id);
    tree.current?.children[lines.indexOf(line)]?.scrollIntoView({ block: 'nearest' });
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[index];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'ArrowDown') moveTo(index + 1);
    else if (event.key === 'ArrowUp') moveTo(index - 1);
    else if (event.key === 'Home') moveTo(0);
    else if (event.key === 'End') moveTo(lines.length - 1);
    else if (event.key === 'Enter' || event.key === ' ') act(line);
    else if (event.key === 'ArrowRight' && line.open !== undefined) line.open ? moveTo(index + 1) : fold(line, true);
    else if (event.key === 'ArrowLeft') line.open ? fold(line, false) : moveTo(lines.findIndex(({ id }) => id === line.parent));
    else return;
    event.preventDefault();
  };

  return (
    <div
      ref={tree}
      role="tree"
      className="value-tree"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={lines.length > 0 ? `${id}${index}` : undefined}
      onKeyDown={onKeyDown}
    >
      {lines.map((line, i) => (
        <Branch key={line.id} id={`${id}${i}`} line={line} active={i === index} onAct={() => act(line)} />
      ))}
    </div>
  );
}

function Branch({ id, line, active, onAct }: { id: string; line: Line; active: boolean; onAct: () => void }) {
  const { level, name, value, members, open, position, siblings, more } = line;
  const flash = useFlash(members === undefined ? value : undefined);
  return (
    <div
      role="treeitem"
      id={id}
      aria-level={level}
      aria-posinset={position}
      aria-setsize={siblings}
      aria-selected={active}
      aria-expanded={open}
      data-flash={flash}
      style={{ paddingLeft: indent(level) }}
      onClick={onAct}
    >
      <span className="knob" aria-hidden="true">
        {open === undefined ? '' : open ? '▾' : '▸'}
      </span>
      {more > 0 ? (
        <em>{count(more)} more</em>
      ) : (
        <>
          {name !== undefined && (
            <span className="field">
              <ValueText text={name || '""'} />:{' '}
            </span>
          )}
          <Leaf value={value} members={members} open={open} />
        </>
      )}
    </div>
  );
}

// Deeply nested values must still have room.
const indent = (level: number) => `min(${level * 1.1 - 0.6}rem, 45%)`;

const maxText = 20_000; // characters of an unfolded text

function Leaf({ value, members, open }: Pick<Line, 'value' | 'members' | 'open'>) {
  if (members !== undefined) return <span className="soft">{Array.isArray(value) ? `[${count(members)}]` : `{${count(members)}}`}</span>;
  if (typeof value !== 'string') return <span>{brief(value)}</span>;
  const most = open ? maxText : longText;
  if (value.length <= most)
    return (
      <span className="text">
        "<ValueText text={value} />"
      </span>
    );
  return (
    <>
      <span className="text">
        "<ValueText text={value.slice(0, most)} />…
      </span>{' '}
      <em>{count(value.length)} characters</em>
    </>
  );
}
