import type { Resource } from '@watchtide/client';
import { type KeyboardEvent, useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { copy } from '../app/clipboard';
import { type Methods, useMethods } from '../editor/useMethods';
import { useStore } from '../gateway/tide';
import { Life } from '../life/Life';
import { KeyText } from '../text/KeyText';
import { visible } from '../text/visible';
import { Tree } from './Tree';
import type { TableModel } from './table';
import { useRowResource, useStatus } from './useTableModel';
import './Detail.css';

/** The dialog to open for a resource; without one, it creates a resource. */
export type Dialog =
  | { readonly kind: 'edit'; readonly resource: Resource | undefined }
  | { readonly kind: 'delete'; readonly resource: Resource };

interface Props {
  readonly watch: string;
  readonly model: TableModel;
  /** As in the store's map. */
  readonly rowKey: string;
  /** Only a part of the watch is loaded: what matches the filter. */
  readonly partial: boolean;
  readonly onClose: () => void;
  /** It was reached with the keys that move the selection, and may be left again at once. */
  readonly moved: boolean;
  /** Called for the keys that are pressed on the panel itself, which move the selection as they do in the table. */
  readonly onKeyDown: (event: KeyboardEvent) => void;
  /** undefined: the watch is not writable. */
  readonly onDialog: ((dialog: Dialog) => void) | undefined;
}

/** Shows one resource: its value as a tree, and its life. */
export function Detail({ watch, model, rowKey, partial, onClose, moved, onKeyDown, onDialog }: Props) {
  const row = useRowResource(model, rowKey);
  const own = useOwnStore(watch, rowKey, !model.whole && row === undefined);
  const resource = row ?? own.resource;
  const loaded = useStatus(model, ({ revision }) => revision !== '') && (model.whole || own.loaded);
  const last = useLast(resource);
  const shown = resource ?? last;
  const may = useMethods(
    { watch, key: shown?.key ?? '', ...(shown?.key_encoding && { key_encoding: shown.key_encoding }) },
    onDialog !== undefined && resource !== undefined,
  );
  const panel = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it opens
  useEffect(() => {
    const inTable = document.activeElement?.getAttribute('role') === 'grid';
    if (!moved || !inTable) panel.current?.focus({ preventScroll: true });
  }, []);
  const settled = useSettled(moved);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose();
    else if (event.target === event.currentTarget) onKeyDown(event);
  };
  const key = shown?.key ?? rowKey;
  return (
    <section
      ref={panel}
      className="resource-detail card"
      aria-label={`Resource ${visible(key)}`}
      tabIndex={-1}
      onKeyDown={onKey}
      data-testid="resource-detail"
      data-key={key}
    >
      <div className="bar">
        <h3>
          <KeyText text={key} />
        </h3>
        <CopyKey text={key} />
        {shown?.key_encoding && <span className="soft">key in base64</span>}
        <button type="button" className="push" onClick={onClose} aria-label="Close details">
          ✕
        </button>
      </div>
      {!resource && loaded && (
        <p className="missing" role="status">
          {missing(last !== undefined, partial)}
        </p>
      )}
      {shown && (
        <>
          <div className="bar">
            <span className="soft">
              revision {shown.revision}
              {shown.encoding && ' · value in base64'}
            </span>
            {onDialog && resource && (
              <>
                <button type="button" className="push" disabled={!may.put} onClick={() => onDialog({ kind: 'edit', resource })}>
                  Edit
                </button>
                <button type="button" className="danger" disabled={!may.delete} onClick={() => onDialog({ kind: 'delete', resource })}>
                  Delete
                </button>
              </>
            )}
          </div>
          {onDialog && resource && <p className="soft">{forbidden(may)}</p>}
          <Tree value={shown.value} label="Value" />
          {settled && (
            <Life
              key={key}
              watch={watch}
              resourceKey={shown.key}
              encoding={shown.key_encoding}
              revision={resource?.revision ?? `after ${shown.revision}`}
            />
          )}
        </>
      )}
    </section>
  );
}

// Follows a resource that the table has not loaded. A prefix cannot be in base64.
function useOwnStore(watch: string, rowKey: string, needed: boolean) {
  const store = useStore(needed && !rowKey.startsWith('\udfff') ? watch : undefined, '', rowKey);
  const subscribe = useCallback((changed: () => void) => store?.subscribe(changed) ?? (() => {}), [store]);
  const resource = useSyncExternalStore(subscribe, () => store?.resources.get(rowKey));
  const loaded = useSyncExternalStore(subscribe, () => store !== undefined && store.view.revision !== '');
  return { resource, loaded };
}

function missing(wasThere: boolean, partial: boolean): string {
  if (partial) return `It ${wasThere ? 'was deleted, or no longer matches' : 'does not exist, or does not match'} the filter.`;
  return wasThere ? 'It was deleted. This is its last value.' : 'There is no resource with this key.';
}

function forbidden({ put, delete: deletes }: Methods): string {
  if (put && deletes) return '';
  return `The access rules of this watch do not let you ${put ? 'delete' : deletes ? 'change' : 'change or delete'} this resource.`;
}

function CopyKey({ text }: { text: string }) {
  const [announced, setAnnounced] = useState('');
  const onClick = async () => setAnnounced((await copy(text)) ? 'Copied' : 'The browser did not allow copying');
  return (
    <>
      <span role="status" className="soft">
        {announced}
      </span>
      <button type="button" onClick={() => void onClick()}>
        Copy key
      </button>
    </>
  );
}

// A key that is held down passes by many resources, whose histories nobody reads.
const settledMs = 200;

function useSettled(moved: boolean): boolean {
  const [settled, setSettled] = useState(!moved);
  useEffect(() => {
    if (settled) return;
    const timer = setTimeout(() => setSettled(true), settledMs);
    return () => clearTimeout(timer);
  }, [settled]);
  return settled;
}

// A deleted resource stays readable.
function useLast(resource: Resource | undefined): Resource | undefined {
  const [last, setLast] = useState(resource);
  if (resource && resource !== last) setLast(resource);
  return last;
}
