import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** The built @watchtide/client, for pages without a bundler. */
export const clientFolder = fileURLToPath(new URL('../../../client/dist/', import.meta.url));

/**
 * A web server for pages other than the dashboard. folders maps paths to folders;
 * answer(request, response) handles all other requests.
 */
export class Site {
  #server;

  static async start(folders, answer = notFound) {
    const site = new Site();
    site.#server = createServer((request, response) => {
      serve(folders, request, response).then((served) => served || answer(request, response));
    });
    site.#server.listen(0, '127.0.0.1');
    await once(site.#server, 'listening');
    site.origin = `http://127.0.0.1:${site.#server.address().port}`;
    return site;
  }

  async stop() {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

async function serve(folders, { url }, response) {
  const { pathname } = new URL(url, 'http://site');
  const prefix = Object.keys(folders).find((known) => pathname.startsWith(known));
  if (!prefix || !types[extname(pathname)]) return false;
  const content = await readFile(join(folders[prefix], pathname.slice(prefix.length))).catch(() => undefined);
  if (content === undefined) return false;
  response.setHeader('Content-Type', `${types[extname(pathname)]}; charset=utf-8`).end(content);
  return true;
}

function notFound(_request, response) {
  response.writeHead(404).end();
}
