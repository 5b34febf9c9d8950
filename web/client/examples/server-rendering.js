// A page that a server renders with its rows and their position, so that it shows them at once, also
// without scripts, and its stream sends only what has changed since.
import { snapshot, watch } from '@watchtide/client';
import { http } from '@watchtide/client/http';

const name = 'notes';

/** On the server: returns the page, with what the user of this request may see. `headers` are those that name the user, such as `Cookie`. */
export async function render(gateway, { headers = {}, signal } = {}) {
  const initial = await http(gateway, { headers }).snapshot(name, { signal });
  return `<!doctype html>
<title>Notes</title>
<ul>${initial.resources.map(row).join('')}</ul>
<script type="application/json" id="initial">${scriptOf(initial)}</script>
<script type="module" src="/notes.js"></script>`;
}

/** On the server: handles a request of `node:http`. No cache may keep the page, for it is that of one user. */
export const handler = (gateway) => async (request, response) => {
  const { cookie = '' } = request.headers;
  try {
    const page = await render(gateway, { headers: cookie && { Cookie: cookie } });
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' }).end(page);
  } catch (error) {
    response.writeHead(error.status ?? 502, { 'Content-Type': 'text/plain; charset=utf-8' }).end(error.message);
  }
};

/** In the page: begins with the rows of the server, and follows the watch from their position. */
export function follow(gateway, document) {
  const initial = JSON.parse(document.getElementById('initial').textContent);
  const tide = watch(gateway, { watches: [{ watch: name, initial }] });
  const list = document.querySelector('ul');
  tide.store(name).subscribe(({ resources }) => {
    list.innerHTML = [...resources.values()].map(row).join('');
  });
  return { tide, snapshot: () => snapshot(tide.store(name)) };
}

const row = ({ key, value }) => `<li>${escape(key)}: ${escape(JSON.stringify(value))}</li>`;
const escape = (text) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);

// In a script, `<` could end it.
const scriptOf = (value) => JSON.stringify(value).replace(/</g, '\\u003c');
