import { useEffect, useRef, useState } from 'react';
import { KeyText, ValueText } from '../text/KeyText';
import { useChange } from './change';
import { Dialog } from './Dialog';
import type { Props } from './EditorDialog';
import { NewerValue } from './NewerValue';
import { isConflict, type Loaded, load, type Refusal, remove, type Target } from './resource';

/** Asks before it deletes a resource, and again if it has changed meanwhile. */
export function DeleteDialog({ watch, resource, onClose }: Props & { resource: NonNullable<Props['resource']> }) {
  const target: Target = { watch, key: resource.key, ...(resource.key_encoding && { key_encoding: resource.key_encoding }) };
  const [revision, setRevision] = useState(resource.revision); // the revision that the user has seen
  const [refusal, setRefusal] = useState<Refusal>();
  const [newer, setNewer] = useState<Loaded>();
  const [gone, setGone] = useState(false);
  const [busy, setBusy] = useState(false);
  const change = useChange(target, revision);
  const ended = useRef(new AbortController());
  useEffect(() => {
    if (ended.current.signal.aborted) ended.current = new AbortController(); // React mounts it twice in development
    return () => ended.current.abort();
  }, []);

  async function loadCurrent(): Promise<void> {
    const found = await load(target, ended.current.signal);
    if (!found) return setGone(true);
    if ('status' in found) return setRefusal(found);
    setNewer(found);
  }
  async function deleteAt(seen: string): Promise<void> {
    setBusy(true);
    setRevision(seen);
    setNewer(undefined);
    const outcome = await remove(target, { revision: seen, signal: ended.current.signal });
    if (!outcome) return onClose();
    setRefusal(outcome);
    if (isConflict(outcome)) await loadCurrent();
    setBusy(false);
  }
  const changed = change.what === 'changed' && newer?.revision !== change.revision;
  const deleted = gone || change.what === 'deleted';
  return (
    <Dialog
      title={
        <>
          Delete “<KeyText text={resource.key} />
          ”?
        </>
      }
      small={!newer}
      onLeave={onClose}
      aside={
        <span className="soft">
          in {watch}, revision {revision}
        </span>
      }
    >
      <div role="alert">
        {deleted && <p className="notice wait">Another user has already deleted it.</p>}
        {changed && !deleted && (
          <p className="notice wait">
            The resource has changed: it is now at revision {change.revision}.{' '}
            <button type="button" onClick={() => void loadCurrent().catch(ignore)}>
              Show the current value
            </button>
          </p>
        )}
        {refusal && !deleted && (
          <p className="notice bad">
            {refusal.status > 0 && `${refusal.status}: `}
            <ValueText text={refusal.reason} />
          </p>
        )}
      </div>
      {newer && !deleted && (
        <NewerValue loaded={newer} overwrite="Delete this newer value" onOverwrite={() => void deleteAt(newer.revision).catch(ignore)} />
      )}
      <div className="bar buttons">
        <button type="button" className="push" autoFocus onClick={onClose}>
          {deleted ? 'Close' : 'Cancel'}
        </button>
        {!deleted && !newer && (
          <button type="button" className="danger" disabled={busy} onClick={() => void deleteAt(revision).catch(ignore)}>
            Delete
          </button>
        )}
      </div>
    </Dialog>
  );
}

// Only aborted requests throw: the dialog has been closed.
const ignore = () => {};
