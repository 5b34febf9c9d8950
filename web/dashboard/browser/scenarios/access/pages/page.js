import { authenticated, getSession } from '/client/auth.js';
import { eventSourceTransport, watch } from '/client/index.js';
import { remove, show } from './rows.js';

const query = new URLSearchParams(location.search);
const getToken = ({ expired }) => globalThis.issueToken(expired);

// By what the gateway knows the user: ?by=NAME.
const ways = {
  token: () => ({ transport: authenticated({ getToken }) }),
  'token without renewal': () => ({ getToken }),
  session: () => ({ transport: authenticated({ getToken, transport: eventSourceTransport }) }),
  cookie: () => ({ transport: authenticated({ transport: eventSourceTransport }) }),
};

/** The states of the store, without repetitions, and how often a snapshot has replaced everything. */
globalThis.states = [];
globalThis.snapshots = 0;

query.has('kept')
  ? await followKept()
  : follow(
      () => {},
      () => {},
    );

function follow(keep, onClosed) {
  watch('/', { watches: ['services'], ...ways[query.get('by')]() })
    .store('services')
    .subscribe(({ state, error, resources }, { replaced, keys }) => {
      document.getElementById('state').textContent = [state, error?.status].join(' ').trim();
      if (globalThis.states.at(-1) !== state) globalThis.states.push(state);
      if (replaced) globalThis.snapshots++;
      for (const key of replaced ? resources.keys() : keys) resources.has(key) ? show(key, resources.get(key).value.text) : remove(key);
      if (state === 'in_sync') keep(resources);
      if (error) onClosed();
    });
}

/** ?kept: shows first what it has stored for the user, and is loaded again when that is another one. */
async function followKept() {
  const { tag, name } = await getSession('/').catch(() => ({ tag: '', name: '' }));
  if (!tag) return void setTimeout(() => location.reload(), 500); // until somebody signs in
  document.getElementById('user').textContent = name;
  const place = `rows of ${tag}`;
  for (const [key, text] of Object.entries(JSON.parse(localStorage.getItem(place) ?? '{}'))) show(key, `${text} (stored)`);
  const texts = (resources) => Object.fromEntries([...resources].map(([key, { value }]) => [key, value.text]));
  follow(
    (resources) => localStorage.setItem(place, JSON.stringify(texts(resources))),
    () => location.reload(),
  );
}
