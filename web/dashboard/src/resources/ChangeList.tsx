import { moment } from '../text/moment';
import { count } from '../text/number';
import { brief } from './brief';
import type { Change } from './changes';
import type { Difference } from './diff';

const maxDifferences = 12; // of one change

/** Shows the changes of a resource, the newest first. */
export function ChangeList({ changes }: { changes: readonly Change[] }) {
  if (changes.length === 0) return <p className="soft">None since this was opened.</p>;
  return (
    <ol className="change-list">
      {changes.map((change, i) => (
        <li key={`${changes.length - i} ${change.at}`}>
          <time dateTime={new Date(change.at).toISOString()}>{moment(change.at)}</time>{' '}
          <span className="soft">{change.revision ? `revision ${change.revision}` : ''}</span> {textOf(change)}
          <ul>
            {change.differences.slice(0, maxDifferences).map((difference) => (
              <Diff key={difference.path.join('\0')} difference={difference} />
            ))}
          </ul>
          {change.differences.length > maxDifferences && (
            <span className="soft">and {count(change.differences.length - maxDifferences)} more</span>
          )}
        </li>
      ))}
    </ol>
  );
}

function textOf({ kind, differences }: Change): string {
  if (kind !== 'changed') return kind;
  return differences.length === 0 ? 'written again, unchanged' : '';
}

function Diff({ difference: { path, before, after } }: { difference: Difference }) {
  return (
    <li>
      <span className="field">{path.join('.') || 'value'}</span> <Side value={before} was /> <span aria-hidden="true">→</span>
      <span className="visually-hidden">became</span> <Side value={after} />
    </li>
  );
}

function Side({ value, was }: { value: unknown; was?: boolean }) {
  if (value === undefined) return <em>absent</em>;
  const text = typeof value === 'string' ? JSON.stringify(brief(value, 120)) : brief(value, 120);
  return was ? <del>{text}</del> : <ins>{text}</ins>;
}
