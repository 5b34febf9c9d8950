// Follows a URL with the npm package eventsource, and prints each event as one line of
// JSON. Arguments: the folder with the packages, and the URL.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, url] = process.argv.slice(2);
const main = createRequire(resolve(modules, 'x.js')).resolve('eventsource');
const { EventSource } = await import(pathToFileURL(main).href);

const source = new EventSource(url);
for (const type of ['hello', 'reset', 'upsert', 'delete', 'end_of_snapshot', 'bookmark', 'status', 'goodbye']) {
  source.addEventListener(type, (e) => process.stdout.write(JSON.stringify({ event: e.type, data: e.data }) + '\n'));
}
source.addEventListener('error', () => {
  if (source.readyState === EventSource.CLOSED) process.exit(1); // it never reconnects
});
