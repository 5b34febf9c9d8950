#!/usr/bin/env node
// feed.mjs: keeps the watch "services" equal to the services of Consul's catalog, with the state of
// their checks. Needs Node 20 or newer, and nothing else.
import { setTimeout as pause } from 'node:timers/promises';

const consul = process.env.CONSUL_HTTP_ADDR ?? 'http://127.0.0.1:8500';
const gateway = process.env.WATCHTIDE_SERVER ?? 'http://127.0.0.1:8080';
const resources = `${gateway}/v1/watches/services/resources`;
const worst = ['passing', 'warning', 'critical'];

/** Asks Consul, and waits until the answer is another one than at index. */
async function ask(path, index) {
  const response = await fetch(`${consul}${path}?index=${index}&wait=60s`, { headers: { 'X-Consul-Token': process.env.CONSUL_HTTP_TOKEN ?? '' } });
  if (!response.ok) throw new Error(`Consul: ${response.status} ${await response.text()}`);
  return { index: Number(response.headers.get('X-Consul-Index')), body: await response.json() };
}

/** The services by name, each with how many of its instances are in which state. */
function summarize(checks) {
  const services = new Map();
  for (const { ServiceName: name, ServiceID: id, Node: node, Status: status, Output: output } of checks) {
    if (!name) continue; // a check of a node
    const instances = services.get(name) ?? services.set(name, new Map()).get(name);
    const before = instances.get(`${node}/${id}`);
    if (!before || worst.indexOf(status) > worst.indexOf(before.state)) instances.set(`${node}/${id}`, { state: status, output });
  }
  return new Map([...services].sort().map(([name, instances]) => [name, summary([...instances.values()])]));
}

function summary(instances) {
  const passing = instances.filter(({ state }) => state === 'passing').length;
  const failing = instances.find(({ state }) => state === 'critical') ?? instances.find(({ state }) => state === 'warning');
  const state = passing === instances.length ? 'passing' : passing > 0 ? 'warning' : failing.state;
  return { state, passing, instances: instances.length, output: failing?.output.trim().slice(0, 200) ?? '' };
}

async function write(method, name, body) {
  const response = await fetch(`${resources}/${encodeURIComponent(name)}`, { method, body });
  if (!response.ok && response.status !== 404) throw new Error(`${method} ${name}: ${response.status} ${await response.text()}`);
}

/** What the watch has, so that a service that went away while this program did not run goes away too. */
async function present() {
  const lines = await (await fetch(`${gateway}/v1/watches/services/events?format=ndjson&until=end_of_snapshot`)).text();
  const events = lines.trim().split('\n').map((line) => JSON.parse(line));
  return new Map(events.filter(({ type }) => type === 'upsert').map(({ key, value }) => [key, JSON.stringify(value)]));
}

for (let index = 0, known; ;) {
  try {
    known ??= await present();
    const { index: next, body } = await ask('/v1/health/state/any', index);
    const services = summarize(body);
    for (const [name, service] of services) {
      const text = JSON.stringify(service);
      if (known.get(name) !== text) await write('PUT', name, text);
      known.set(name, text);
    }
    for (const name of known.keys()) {
      if (services.has(name)) continue;
      await write('DELETE', name);
      known.delete(name);
    }
    index = next < index ? 0 : next; // Consul was restored: begin again
  } catch (error) {
    console.error(error.cause?.message ?? error.message);
    known = undefined;
    index = 0;
    await pause(2_000);
  }
}
