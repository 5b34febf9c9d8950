import type { HistoricChange } from '@watchtide/protocol';
import { memo } from 'react';
import { brief } from '../resources/brief';
import { type Difference, diff } from '../resources/diff';
import { ValueText } from '../text/KeyText';
import { moment } from '../text/moment';
import { count } from '../text/number';

const maxDifferences = 12; // of one change

interface Props {
  readonly change: HistoricChange;
  /** The version before; undefined: it is not known, or there was none. */
  readonly before: HistoricChange | undefined;
  /** Whether there was none. */
  readonly created: boolean;
}

/** Shows when a version began, and how it differs from the one before. */
export const VersionText = memo(function VersionText({ change, before, created }: Props) {
  const differences = change.type === 'upsert' && before?.type === 'upsert' ? diff(before.value, change.value) : [];
  return (
    <>
      {change.committed_at && (
        <>
          <time dateTime={change.committed_at}>{moment(Date.parse(change.committed_at))}</time>{' '}
        </>
      )}
      <span className="soft">revision {change.revision}</span> {textOf(change, before, created, differences.length)}
      {change.conflated && <em className="soft"> values before it may be missing</em>}
      {change.type === 'upsert' && before?.type !== 'upsert' && (
        <code className="brief">
          <ValueText text={brief(change.value, 160)} />
        </code>
      )}
      {differences.length > 0 && (
        <ul>
          {differences.slice(0, maxDifferences).map((difference) => (
            <Diff key={difference.path.join('\0')} difference={difference} />
          ))}
        </ul>
      )}
      {differences.length > maxDifferences && <span className="soft">and {count(differences.length - maxDifferences)} more</span>}
    </>
  );
});

function textOf(change: HistoricChange, before: HistoricChange | undefined, created: boolean, differences: number): string {
  if (change.type === 'delete') return 'deleted';
  if (before === undefined) return created ? 'created' : '';
  if (before.type === 'delete') return 'created again';
  return differences === 0 ? 'written again, unchanged' : '';
}

function Diff({ difference: { path, before, after } }: { difference: Difference }) {
  return (
    <li>
      <span className="field">
        <ValueText text={path.join('.') || 'value'} />
      </span>{' '}
      <Side value={before} was /> <span aria-hidden="true">→</span>
      <span className="visually-hidden">became</span> <Side value={after} />
    </li>
  );
}

function Side({ value, was }: { value: unknown; was?: boolean }) {
  if (value === undefined) return <em>absent</em>;
  const text = typeof value === 'string' ? JSON.stringify(brief(value, 120)) : brief(value, 120);
  const shown = <ValueText text={text} />;
  return was ? <del>{shown}</del> : <ins>{shown}</ins>;
}
