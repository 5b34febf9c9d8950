import { createRoot } from 'react-dom/client';
import { watch } from '@watchtide/client';
import { useWatch } from '@watchtide/client/react';

const gateway = new URLSearchParams(location.search).get('gateway') ?? 'http://127.0.0.1:8080';
const tide = watch(gateway, { watches: ['notes'] });
const notes = tide.store('notes');

function Notes() {
  const { resources, state, reason } = useWatch(notes);
  const sorted = [...resources.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  const done = sorted.filter(({ value }) => value.done).length;
  return (
    <main className={state === 'in_sync' ? '' : 'old'}>
      <h1>Notes</h1>
      <p role="status">{state === 'in_sync' ? `${done} of ${sorted.length} done` : reason ?? state}</p>
      <ul>{sorted.map((note) => <Note key={note.key} note={note} />)}</ul>
    </main>
  );
}

function Note({ note: { key, revision, value } }) {
  // The write names the revision that is shown: nobody's change is lost. The page changes when the stream says so.
  const toggle = () => fetch(`${gateway}/v1/watches/notes/resources/${encodeURIComponent(key)}`, {
    method: 'PUT',
    headers: { 'If-Match': `"${revision}"` },
    body: JSON.stringify({ ...value, done: !value.done }),
  });
  return (
    <li className={value.done ? 'done' : ''}>
      <label><input type="checkbox" checked={Boolean(value.done)} onChange={toggle} /> {key}: {value.text}</label>
    </li>
  );
}

createRoot(document.getElementById('root')).render(<Notes />);
