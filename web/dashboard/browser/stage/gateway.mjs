import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from './build.mjs';
import { Process } from './process.mjs';
import { until } from './until.mjs';

/** The heartbeat of these gateways, in ms: clients give up after twice that. */
export const heartbeatMs = 1_000;

/** The real gateway, with two watches of an upstream, and a writable one of its own. */
export class Gateway {
  #process;

  /** port: 0 for any; origins: the origins of other pages that may read; hosts: further names, which make the gateway public. */
  static async start(upstream, { port = 0, origins = [], hosts = [], heartbeat = `${heartbeatMs}ms` } = {}) {
    const gateway = new Gateway();
    const file = join(await mkdtemp(join(tmpdir(), 'watchtide-browser-')), 'gateway.yaml');
    await writeFile(file, config({ upstream, port, origins, hosts, heartbeat }));
    const [process, [address, operations]] = await Process.start(await build('cmd/gateway'), ['serve', '--config', file], listening);
    gateway.#process = process;
    gateway.address = address;
    gateway.port = Number(address.split(':')[1]);
    gateway.origin = `http://${address}`;
    gateway.operations = `http://${operations}`;
    await until('the gateway is ready', async () => (await fetch(`${gateway.origin}/readyz`)).ok);
    return gateway;
  }

  /** Returns the gateway's information about a watch. */
  async watch(name) {
    const { watches } = await (await fetch(`${this.origin}/v1/watches`)).json();
    return watches.find((watch) => watch.name === name);
  }

  async put(watch, key, value) {
    const response = await fetch(`${this.origin}/v1/watches/${watch}/resources/${key}`, { method: 'PUT', body: JSON.stringify(value) });
    if (!response.ok) throw new Error(`PUT ${key}: ${response.status} ${await response.text()}`);
  }

  /** Shuts it down, with a goodbye to every client. */
  drain = () => this.#process.stop('SIGTERM');
  kill = () => this.#process.stop('SIGKILL');
}

const listening = (line) => /\blistening\b.*\bhttp"?[=:]"?([0-9.:]+).*\boperations"?[=:]"?([0-9.:]+)/.exec(line)?.slice(1);

const config = ({ upstream, port, origins, hosts, heartbeat }) => `
http: { listen: "127.0.0.1:${port}", hosts: ${JSON.stringify(hosts)}, allowed_origins: ${JSON.stringify(origins)} }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
stream: { heartbeat: ${heartbeat}, retry: 100ms, drain: 100ms }
metrics: { enabled: true }
sources:
  local:     { type: store }
  inventory: { type: grpc, address: ${JSON.stringify(upstream.address)} }
watches:
  services: { source: inventory }
  nodes:    { source: inventory }
  notes:    { source: local }
`;
