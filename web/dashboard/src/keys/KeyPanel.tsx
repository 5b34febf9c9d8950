import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, useId, useMemo, useRef, useState } from 'react';
import type { ResourceStore } from '../gateway/tide';
import { KeyText } from '../text/KeyText';
import { count } from '../text/number';
import type { Branch, PrefixTree } from './prefixTree';
import { type Counted, usePrefixTree } from './usePrefixTree';
import './KeyPanel.css';

const lineHeight = 28;

interface Props {
  /** undefined if it would have too many resources. */
  readonly store: ResourceStore | undefined;
  readonly tooMany: number;
  /** The chosen prefix; empty for all keys. */
  readonly prefix: string;
  readonly onChoose: (prefix: string) => void;
  readonly onClose: () => void;
}

/** The prefixes of the keys with their counts. The one that is chosen narrows the table. */
export function KeyPanel({ store, tooMany, prefix, onChoose, onClose }: Props) {
  return (
    <section className="key-panel card" aria-label="Keys by prefix">
      <div className="bar">
        <h3>Keys</h3>
        <button type="button" className="push" onClick={onClose} aria-label="Close keys">
          ✕
        </button>
      </div>
      {store ? (
        <Prefixes store={store} prefix={prefix} onChoose={onChoose} />
      ) : (
        <p className="soft">{count(tooMany)} resources are too many for a tree of their keys. Filter them first.</p>
      )}
    </section>
  );
}

function Prefixes({ store, prefix, onChoose }: Pick<Props, 'prefix' | 'onChoose'> & { readonly store: ResourceStore }) {
  const counted = usePrefixTree(store);
  if (!counted) return <p className="soft">Counting…</p>;
  if (!counted.tree) return <p className="soft">The keys have no parts with “/”, “:” or “.” between them.</p>;
  return <PrefixList counted={counted} tree={counted.tree} prefix={prefix} onChoose={onChoose} />;
}

interface ListProps extends Pick<Props, 'prefix' | 'onChoose'> {
  readonly counted: Counted;
  readonly tree: PrefixTree;
}

function PrefixList({ counted, tree, prefix, onChoose }: ListProps) {
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(['', ...above(prefix, tree.separator)]));
  const [chosen, setChosen] = useState(prefix);
  // biome-ignore lint/correctness/useExhaustiveDependencies: counted changes when the tree does
  const lines = useMemo(() => linesOf(tree, open), [counted, tree, open]);
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => lineHeight,
    overscan: 8,
  });
  const at = Math.max(
    0,
    lines.findIndex(({ branch }) => branch.prefix === chosen),
  );
  const fold = ({ prefix }: Branch, isOpen: boolean) =>
    setOpen((open) => (isOpen ? new Set([...open, prefix]) : new Set([...open].filter((one) => one !== prefix))));
  const moveTo = (to: number) => {
    const line = lines[Math.max(0, Math.min(to, lines.length - 1))];
    if (!line) return;
    setChosen(line.branch.prefix);
    list.scrollToIndex(lines.indexOf(line));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[at];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const { branch, level } = line;
    const isOpen = open.has(branch.prefix);
    if (event.key === 'ArrowDown') moveTo(at + 1);
    else if (event.key === 'ArrowUp') moveTo(at - 1);
    else if (event.key === 'Home') moveTo(0);
    else if (event.key === 'End') moveTo(lines.length - 1);
    else if (event.key === 'Enter' || event.key === ' ') onChoose(branch.prefix);
    else if (event.key === 'ArrowRight' && branch.hasBranches) isOpen ? moveTo(at + 1) : fold(branch, true);
    else if (event.key === 'ArrowLeft')
      isOpen && level > 1 ? fold(branch, false) : moveTo(lines.findLastIndex((line, i) => i < at && line.level < level));
    else return;
    event.preventDefault();
  };
  const rows = list.getVirtualItems();
  const drawn = rows.some(({ index }) => index === at);
  return (
    <div
      ref={scroller}
      role="tree"
      className="prefixes"
      aria-label="Prefixes"
      tabIndex={0}
      aria-activedescendant={drawn ? `${id}${at}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div role="none" style={{ height: list.getTotalSize() }}>
        {rows.map(({ index, start }) => {
          const { branch, level, position, siblings } = lines[index]!;
          const isOpen = branch.hasBranches ? open.has(branch.prefix) : undefined;
          return (
            <div
              key={branch.prefix}
              id={`${id}${index}`}
              role="treeitem"
              aria-level={level}
              aria-posinset={position}
              aria-setsize={siblings}
              aria-expanded={isOpen}
              aria-selected={branch.prefix === prefix}
              data-active={index === at || undefined}
              data-prefix={branch.prefix}
              style={{ transform: `translateY(${start}px)`, paddingLeft: `${level * 0.9 - 0.6}rem` }}
              onClick={() => {
                setChosen(branch.prefix);
                onChoose(branch.prefix);
              }}
            >
              <span
                className="knob"
                aria-hidden="true"
                onClick={(event) => {
                  event.stopPropagation();
                  if (level > 1) fold(branch, !isOpen);
                }}
              >
                {isOpen === undefined ? '' : isOpen ? '▾' : '▸'}
              </span>
              <span className="name">{branch.name === '' ? 'All keys' : <KeyText text={branch.name} />}</span>{' '}
              <span className="soft number">{count(branch.count)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface Line {
  readonly branch: Branch;
  readonly level: number;
  readonly position: number;
  readonly siblings: number;
}

/** Returns the visible lines of a tree: the branches below open ones. */
export function linesOf(tree: PrefixTree, open: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  const add = (branches: readonly Branch[], level: number) =>
    branches.forEach((branch, i) => {
      lines.push({ branch, level, position: i + 1, siblings: branches.length });
      if (open.has(branch.prefix)) add(tree.below(branch), level + 1);
    });
  add([tree.all], 1);
  return lines;
}

/** Returns the prefixes of the branches above one: `a/`, `a/b/` of `a/b/c/`. */
function above(prefix: string, separator: string): string[] {
  const parts = prefix.split(separator);
  return parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join(separator) + separator);
}
