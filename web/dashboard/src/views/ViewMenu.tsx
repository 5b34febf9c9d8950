import { type FormEvent, useState } from 'react';
import { copy } from '../app/clipboard';
import { useMenu } from '../app/menu';
import { parseRoute } from '../app/route';
import { deleteView, maxName, renameView, type SavedView, saveView, useSavedViews } from './saved';
import './ViewMenu.css';

/** A menu with the saved views of a watch. */
export function ViewMenu({ watch }: { watch: string }) {
  const { open, close, menu, button, props, panel } = useMenu();
  const saved = useSavedViews().filter(({ hash }) => parseRoute(hash).name === watch);
  const [name, setName] = useState('');
  const [note, setNote] = useState('');
  const save = (event: FormEvent) => {
    event.preventDefault();
    const refused = saveView({ name, hash: location.hash });
    setNote(refused || 'Saved.');
    if (!refused) setName('');
  };
  const copyLink = async () => setNote((await copy(location.href)) ? 'The link is copied.' : 'The browser did not allow copying.');
  return (
    <div className="view-menu" ref={menu} {...props}>
      <button ref={button.ref} type="button" {...button.props}>
        Views
      </button>
      <div id={panel} className="card panel" hidden={!open}>
        <ul aria-label="Saved views">
          {saved.map((view) => (
            <Saved key={view.name} view={view} onGo={close} onNote={setNote} />
          ))}
        </ul>
        {saved.length === 0 && <p className="soft">No saved views. A view has the filter, the order, the columns and the open resource.</p>}
        <form onSubmit={save}>
          <input
            aria-label="Name of the view"
            placeholder="Name"
            maxLength={maxName}
            value={name}
            onChange={({ target }) => setName(target.value)}
          />{' '}
          <button type="submit" disabled={name.trim() === ''}>
            Save this view
          </button>
        </form>
        <button type="button" onClick={() => void copyLink()}>
          Copy link
        </button>
        <p role="status" className="soft">
          {note}
        </p>
      </div>
    </div>
  );
}

function Saved({ view, onGo, onNote }: { view: SavedView; onGo: () => void; onNote: (note: string) => void }) {
  const [renamed, setRenamed] = useState<string>();
  if (renamed !== undefined) {
    const rename = (event: FormEvent) => {
      event.preventDefault();
      const refused = renameView(view.name, renamed);
      onNote(refused);
      if (!refused) setRenamed(undefined);
    };
    return (
      <li>
        <form onSubmit={rename}>
          <input
            aria-label={`New name of ${view.name}`}
            autoFocus
            maxLength={maxName}
            value={renamed}
            onChange={({ target }) => setRenamed(target.value)}
          />{' '}
          <button type="submit">Rename</button>
        </form>
      </li>
    );
  }
  return (
    <li>
      <a href={view.hash} onClick={onGo}>
        {view.name}
      </a>
      <button type="button" aria-label={`Rename ${view.name}`} onClick={() => setRenamed(view.name)}>
        ✎
      </button>
      <button type="button" aria-label={`Delete ${view.name}`} onClick={() => onNote(deleteView(view.name))}>
        ✕
      </button>
    </li>
  );
}
