// Rows that are kept in IndexedDB: the page shows them at once, as stale, and the stream sends only what
// has changed since. They are kept by user, and erased when the session ends, and when another user comes.
// Where rows cannot be kept or read, the page follows the watch without them.
import { snapshot, watch } from '@watchtide/client';
import { authenticated, getSession, onLogout } from '@watchtide/client/auth';

const everyMs = 10_000;
const openMs = 2_000; // a browser may never answer: the rows of the gateway are not to wait for it
const table = 'snapshots';

/** Follows a watch. Returns its store, and close, which keeps the rows. */
export async function followStored(gateway, name) {
  // Without the gateway it is unknown whose rows they are: then none are shown or kept.
  const { tag } = (await getSession(gateway).catch(warn)) ?? {};
  const database = tag === undefined ? undefined : await soon(open()).catch(warn);
  const kept = database && (await soon(readAfterErasing(database, tag, name)).catch(warn));
  const initial = isSnapshot(kept) ? kept : undefined;
  const tide = watch(gateway, { watches: [{ watch: name, initial }], transport: authenticated({ tag }) });
  const store = tide.store(name);
  return { store, close: keep(database, [tag, name], gateway, tide, store) };
}

const warn = (error) => void console.warn(error);

/** Settles as the answer does, or rejects when that takes too long. */
function soon(answer) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('IndexedDB does not answer')), openMs);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

async function readAfterErasing(database, tag, name) {
  await eraseExcept(database, tag);
  return read(database, [tag, name]);
}

// What another version of the page, or a browser that was cut off, has left behind may be anything.
const isSnapshot = (value) =>
  typeof value?.position === 'string' &&
  typeof value.revision === 'string' &&
  typeof value.since === 'number' &&
  Array.isArray(value.resources) &&
  value.resources.every((resource) => typeof resource?.key === 'string' && typeof resource.revision === 'string');

// Saves the rows from time to time, and when the page is hidden: it may not come back.
function keep(database, key, gateway, tide, store) {
  let saved = store.view.resources;
  const save = () => {
    const rows = store.view.resources;
    const now = database && rows !== saved && store.state !== 'closed' && snapshot(store);
    if (now) write(database, now, key).then(() => (saved = rows), warn);
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
    if (database) eraseExcept(database, undefined).catch(warn);
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

async function open() {
  const request = indexedDB.open('watchtide', 1);
  request.onupgradeneeded = () => request.result.createObjectStore(table);
  const database = await done(request);
  database.onversionchange = () => database.close(); // or else whoever deletes or upgrades it waits for this page
  return database;
}

const read = (database, key) => done(database.transaction(table).objectStore(table).get(key));

// Rows are kept once the transaction is complete: a browser may find only then that there is no room.
const write = (database, value, key) =>
  new Promise((resolve, reject) => {
    const transaction = database.transaction(table, 'readwrite');
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
    transaction.objectStore(table).put(value, key);
  });

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
