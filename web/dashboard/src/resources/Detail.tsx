import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import type { Resource } from '@watchtide/client';
import { ChangeList } from './ChangeList';
import type { Look, Sheet } from './model';
import { Tree } from './Tree';
import { useChanges } from './useChanges';
import './Detail.css';

/** What somebody wants to do with a resource; without one, to create it. */
export type Dialog = { readonly kind: 'edit'; readonly resource: Resource | undefined } | { readonly kind: 'delete'; readonly resource: Resource };

interface Props {
  readonly sheet: Sheet;
  readonly look: Look;
  /** As in the store's map. */
  readonly rowKey: string;
  readonly onClose: () => void;
  /** undefined: the watch is not writable. */
  readonly onDialog: ((dialog: Dialog) => void) | undefined;
}

/** One resource: its value as a tree, and what became different since it was opened. */
export function Detail({ sheet, look, rowKey, onClose, onDialog }: Props) {
  const resource = sheet.rows.get(rowKey)?.resource;
  const last = useLast(resource);
  const changes = useChanges(resource, look.revision !== '');
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose();
  };
  const shown = resource ?? last;
  const key = shown?.key ?? rowKey;
  return (
    <section ref={panel} className="resource-detail card" aria-label={`Resource ${key}`} tabIndex={-1} onKeyDown={onKeyDown} data-testid="resource-detail" data-key={key}>
      <div className="bar">
        <h3>{key}</h3>
        {shown?.key_encoding && <span className="soft">key in base64</span>}
        <button type="button" className="push" onClick={onClose} aria-label="Close details">✕</button>
      </div>
      {!resource && look.revision !== '' && <p className="missing" role="status">{last ? 'It was deleted. This is its last value.' : 'There is no resource with this key.'}</p>}
      {shown && <>
        <div className="bar">
          <span className="soft">revision {shown.revision}{shown.encoding && ' · value in base64'}</span>
          {onDialog && resource && <>
            <button type="button" className="push" onClick={() => onDialog({ kind: 'edit', resource })}>Edit</button>
            <button type="button" className="danger" onClick={() => onDialog({ kind: 'delete', resource })}>Delete</button>
          </>}
        </div>
        <Tree value={shown.value} label="Value" />
        <h4>Recent changes</h4>
        <ChangeList changes={changes} />
      </>}
    </section>
  );
}

// What was deleted stays to be read.
function useLast(resource: Resource | undefined): Resource | undefined {
  const [last, setLast] = useState(resource);
  if (resource && resource !== last) setLast(resource);
  return last;
}
