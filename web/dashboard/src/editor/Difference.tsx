import { useMemo } from 'react';
import { ValueText } from '../text/KeyText';
import { count } from '../text/number';
import { type DiffLine, diffLines } from './lines';

const context = 3; // unchanged lines that are shown beside changed ones
const maxLines = 500;

/** Shows what saving would change, line by line. */
export function Difference({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const added = lines.filter(({ kind }) => kind === 'added').length;
  const removed = lines.filter(({ kind }) => kind === 'removed').length;
  if (added + removed === 0) return <p className="soft">Nothing is changed.</p>;
  return (
    <details className="difference" open>
      <summary>
        Changes: {count(removed)} {removed === 1 ? 'line' : 'lines'} removed, {count(added)} added
      </summary>
      <pre tabIndex={0} aria-label="Changes">
        {nearChanges(lines)
          .slice(0, maxLines)
          .map(({ kind, text }, i) => (
            <Line key={i} kind={kind} text={text} />
          ))}
      </pre>
    </details>
  );
}

const signs = { same: ' ', added: '+', removed: '−' };

function Line({ kind, text }: DiffLine) {
  const content = <ValueText text={`${signs[kind]} ${text}`} />;
  if (kind === 'added') return <ins>{content}</ins>;
  return kind === 'removed' ? <del>{content}</del> : <span>{content}</span>;
}

function nearChanges(lines: readonly DiffLine[]): DiffLine[] {
  const near = new Set<number>();
  lines.forEach(({ kind }, i) => {
    if (kind !== 'same') for (let j = i - context; j <= i + context; j++) near.add(j);
  });
  return lines.flatMap((line, i) => (near.has(i) ? [line] : near.has(i - 1) ? [{ kind: 'same' as const, text: '…' }] : []));
}
