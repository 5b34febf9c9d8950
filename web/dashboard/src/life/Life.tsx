import { useMemo } from 'react';
import { Tree } from '../resources/Tree';
import { PlayButtons } from './PlayButtons';
import { idOf, isCreation } from './past';
import { Since } from './Since';
import { usePast } from './usePast';
import { usePlayer } from './usePlayer';
import { VersionText } from './Version';
import './life.css';

interface Props {
  readonly watch: string;
  /** As the wire has it. */
  readonly resourceKey: string;
  readonly encoding: string | undefined;
  /** The revision of the resource that the table has; '' if it has none. */
  readonly revision: string;
}

/** Shows the versions of a resource: each with its changes, and the value of the one that is chosen or played. */
export function Life({ watch, resourceKey, encoding, revision }: Props) {
  const past = usePast(watch, revision, false, resourceKey, encoding);
  const ids = useMemo(() => past.changes.map(idOf), [past.changes]);
  const { index, playing, onShow, ...moves } = usePlayer(ids);
  const shown = past.changes[index];
  return (
    <section className="life" aria-label="Life of the resource" data-testid="life">
      <h4>Life</h4>
      <PlayButtons index={index} versions={ids.length} playing={playing} {...moves} />
      {index > 0 && shown && (
        <div className="then" data-testid="then">
          {shown.type === 'delete' ? (
            <p className="missing">At revision {shown.revision} it did not exist.</p>
          ) : (
            <Tree value={shown.value} label={`Value at revision ${shown.revision}`} />
          )}
        </div>
      )}
      <ol className="versions" aria-label="Versions, newest first">
        {past.changes.map((change, i) => (
          <li key={ids[i]} aria-current={i === index ? 'true' : undefined}>
            <button type="button" className="plain-button" onClick={() => onShow(ids[i]!)} aria-label={`Show revision ${change.revision}`}>
              ●
            </button>
            <div>
              <VersionText change={change} before={past.changes[i + 1]} created={isCreation(change, past)} />
            </div>
          </li>
        ))}
      </ol>
      {past.more && (
        <button type="button" onClick={past.older} disabled={past.loading}>
          Older versions
        </button>
      )}
      <Since past={past} />
    </section>
  );
}
