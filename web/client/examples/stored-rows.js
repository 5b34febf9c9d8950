// Rows that are kept in IndexedDB: the page shows them at once, as stale, and the stream sends only what
// has changed since. They are kept by user, and erased when the session ends, and when another user comes.
import { picture, watch } from '@watchtide/client';
import { authenticated, getSession, onLogout } from '@watchtide/client/auth';

const everyMs = 10_000;
const table = 'pictures';

/** Follows a watch. Returns its store, and close, which keeps the rows. */
export async function followStored(gateway, name) {
  const { tag } = await getSession(gateway);
  const database = await open();
  await eraseExcept(database, tag);
  const initial = await read(database, [tag, name]);
  const tide = watch(gateway, { watches: [{ watch: name, initial }], transport: authenticated({ tag }) });
  const store = tide.store(name);
  return { store, close: keep(database, [tag, name], gateway, tide, store) };
}

// Saves the rows from time to time, and when the page is hidden: it may not come back.
function keep(database, key, gateway, tide, store) {
  let saved = store.view.resources;
  const save = () => {
    const rows = store.view.resources;
    const now = rows !== saved && store.state !== 'closed' && picture(store);
    if (now) write(database, now, key).then(() => (saved = rows), console.warn);
  };
  const hidden = () => document.hidden && save();
  const timer = setInterval(save, everyMs);
  globalThis.document?.addEventListener('visibilitychange', hidden);
  const close = () => {
    clearInterval(timer);
    globalThis.document?.removeEventListener('visibilitychange', hidden);
    ignoreLogout();
    tide.close();
  };
  // What is shown is the user's too: the page is left for the one on which people sign in.
  const ignoreLogout = onLogout(gateway, () => {
    close();
    eraseExcept(database, undefined).catch(console.warn);
  });
  return () => {
    save();
    close();
  };
}

/** Erases the rows of all users but the one with this tag. */
async function eraseExcept(database, tag) {
  const rows = database.transaction(table, 'readwrite').objectStore(table);
  for (const key of await done(rows.getAllKeys())) if (key[0] !== tag) await done(rows.delete(key));
}

function open() {
  const request = indexedDB.open('watchtide', 1);
  request.onupgradeneeded = () => request.result.createObjectStore(table);
  return done(request);
}

const read = (database, key) => done(database.transaction(table).objectStore(table).get(key));
const write = (database, value, key) => done(database.transaction(table, 'readwrite').objectStore(table).put(value, key));

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
