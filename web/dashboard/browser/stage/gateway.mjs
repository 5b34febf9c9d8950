import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from './build.mjs';
import { Process } from './process.mjs';
import { patience, until } from './until.mjs';

/** The heartbeat of these gateways, in ms: clients give up after twice that. */
export const heartbeatMs = 1_000;

/** The real gateway, with two watches of an upstream, and a writable one of its own. */
export class Gateway {
  #process;
  #headers = {};
  #write; // the configuration

  /**
   * port: 0 for any; origins: the origins of other pages that may read; hosts: further names, which make the gateway public;
   * guard: whose credentials it accepts, with the rules of the watches in allow; tls: the files of a certificate for https;
   * deliveryReports: whether it takes reports of when pages have painted a change;
   * views: further watches, which are views of those, by name;
   * replicas: the operations listeners of other gateways; readyMs: how long it may take until it has loaded its watches.
   */
  static async start(
    upstream,
    {
      port = 0,
      origins = [],
      hosts = [],
      heartbeat = `${heartbeatMs}ms`,
      guard,
      allow = {},
      tls,
      deliveryReports = false,
      views = {},
      replicas = [],
      readyMs = patience,
    } = {},
  ) {
    const gateway = new Gateway();
    const file = join(await mkdtemp(join(tmpdir(), 'watchtide-browser-')), 'gateway.yaml');
    gateway.#write = (allow) =>
      writeFile(file, config({ upstream, port, origins, hosts, heartbeat, guard, allow, tls, deliveryReports, views, replicas }));
    await gateway.#write(allow);
    if (guard) gateway.#headers = { Authorization: `Bearer ${guard.token('admin')}` };
    const [process, [address, operations]] = await Process.start(await build('cmd/gateway'), ['serve', '--config', file], listening);
    gateway.#process = process;
    gateway.address = address;
    gateway.port = Number(address.split(':')[1]);
    gateway.origin = `${tls ? 'https' : 'http'}://${address}`;
    gateway.operations = `http://${operations}`;
    await until('the gateway is ready', async () => (await fetch(`${gateway.operations}/readyz`)).ok, readyMs);
    return gateway;
  }

  /** Returns the gateway's information about a watch. */
  async watch(name) {
    const { watches } = await (await fetch(`${this.operations}/v1/watches`, { headers: this.#headers })).json();
    return watches.find((watch) => watch.name === name);
  }

  async put(watch, key, value) {
    const url = `${this.operations}/v1/watches/${watch}/resources/${key}`;
    const response = await fetch(url, { method: 'PUT', body: JSON.stringify(value), headers: this.#headers });
    if (!response.ok) throw new Error(`PUT ${key}: ${response.status} ${await response.text()}`);
  }

  /** Replaces the rules of its watches while it runs. */
  async reload(allow) {
    await this.#write(allow);
    this.#process.signal('SIGHUP');
  }

  /** Shuts it down, with a goodbye to every client. */
  drain = () => this.#process.stop('SIGTERM');
  kill = () => this.#process.stop('SIGKILL');
}

export const listening = (line) => /\blistening\b.*\bhttp"?[=:]"?([0-9.:]+).*\boperations"?[=:]"?([0-9.:]+)/.exec(line)?.slice(1);

const config = ({ upstream, port, origins, hosts, heartbeat, guard, allow, tls, deliveryReports, views, replicas }) => `
http:
  listen: "127.0.0.1:${port}"
  hosts: ${JSON.stringify(hosts)}
  allowed_origins: ${JSON.stringify(origins)}
  delivery_reports: ${deliveryReports}
  ${tls ? `public_url: "https://127.0.0.1:${port}"\n  tls: ${JSON.stringify(tls)}` : ''}
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0", replicas: ${JSON.stringify(replicas)} }
stream: { heartbeat: ${heartbeat}, retry: 100ms, drain: 100ms }
metrics: { enabled: true }
sources:
  local:     { type: store }
  inventory: { type: grpc, address: ${JSON.stringify(upstream.address)} }
watches:
  services: { source: inventory, ${rules(allow.services)} }
  nodes:    { source: inventory, ${rules(allow.nodes)} }
  notes:    { source: local, ${rules(allow.notes)} }
${Object.entries(views)
  .map(([name, view]) => `  ${name}: ${JSON.stringify(view)}\n`)
  .join('')}\
${guard ? revocations + guard.auth({ revoked: 'revocations' }) : ''}`;

const rules = (rules) => (rules ? `allow: ${JSON.stringify(rules)}` : '');

const revocations = `\
  revocations: { source: inventory, allow: [{ role: admin, read: "true" }] }
`;
