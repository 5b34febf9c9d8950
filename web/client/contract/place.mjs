import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../../dashboard/browser/stage/build.mjs';
import { listening } from '../../dashboard/browser/stage/gateway.mjs';
import { Guard } from '../../dashboard/browser/stage/guard.mjs';
import { freePort } from '../../dashboard/browser/stage/port.mjs';
import { Process } from '../../dashboard/browser/stage/process.mjs';

/** A real gateway on a port that it keeps, and a server that kills it and starts it again. */
export class Place {
  #process;
  #file;
  #server;

  /** origins: those of pages that may read and control; heartbeat: clients give up after twice that. */
  static async open(origins = [], heartbeat = '1s') {
    const place = new Place();
    const guard = await Guard.of('ada');
    const port = await freePort();
    place.#file = join(await mkdtemp(join(tmpdir(), 'watchtide-contract-')), 'gateway.yaml');
    await writeFile(place.#file, config({ port, origins, heartbeat, auth: guard.auth() }));
    place.url = `http://127.0.0.1:${port}/`;
    place.token = guard.token('admin');
    place.user = guard.token('ada');
    place.guard = guard;
    await place.start();
    await place.#listen(origins);
    return place;
  }

  /** What scenarios get. */
  get data() {
    const { url, token, control } = this;
    return { url, token, control };
  }

  async start() {
    [this.#process] = await Process.start(await build('cmd/gateway'), ['serve', '--config', this.#file], listening);
  }

  kill = () => this.#process.stop('SIGKILL');

  async close() {
    await this.kill();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #listen(origins) {
    const orders = { '/kill': this.kill, '/start': () => this.start() };
    this.#server = createServer((request, response) => {
      if (origins.includes(request.headers.origin)) response.setHeader('Access-Control-Allow-Origin', request.headers.origin);
      const order = orders[request.url];
      if (!order || request.method !== 'POST') return void response.writeHead(404).end();
      order().then(
        () => response.end(),
        (error) => response.writeHead(500).end(String(error)),
      );
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.control = `http://127.0.0.1:${this.#server.address().port}`;
  }
}

const all = (role) => `[{ role: ${role}, read: "true", write: "true", delete: "true" }]`;

const config = ({ port, origins, heartbeat, auth }) => `
http: { listen: "127.0.0.1:${port}", allowed_origins: ${JSON.stringify(origins)} }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
stream: { heartbeat: ${heartbeat}, retry: 100ms, drain: 100ms }
sources: { local: { type: store } }
watches:
  notes:       { source: local, allow: ${all('anyone')} }
  tasks:       { source: local, allow: ${all('anyone')} }
  secrets:     { source: local, allow: ${all('user')} }
${auth}`;
