import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';
import { listening } from './gateway.mjs';
import { Process, run } from './process.mjs';
import { Site } from './site.mjs';

const examples = fileURLToPath(new URL('../../../../examples/', import.meta.url));

/** An example in a browser, with a gateway that has its configuration. */
export class Example {
  /** Opens the page of an example: { page, gateway }. fill is called with the folder of the gateway before it starts. */
  static async open(stage, name, fill) {
    const site = stage.own(await Site.start({ '/': join(examples, name, '/') }));
    const configuration = await readFile(join(examples, name, 'watchtide.yaml'), 'utf8');
    const gateway = stage.own(await ExampleGateway.start(configuration, site.origin, fill));
    return this.#visit(stage, site, gateway);
  }

  /** Returns a function for open that runs a line of the example's README, after change. */
  static runs(name, line, change) {
    return async (folder) => {
      const [, command] = line.exec(await readFile(join(examples, name, 'README.md'), 'utf8'));
      const program = await build('cmd/gateway');
      await run('sh', ['-ec', `watchtide() { "${program}" "$@"; }; ${change(command)}`], { cwd: folder });
    };
  }

  /** Shows a page and a configuration that are text: { page, gateway }. */
  static async show(stage, html, configuration) {
    let gateway;
    const answer = (_request, response) => {
      response.setHeader('Content-Type', 'text/html; charset=utf-8').end(html.replaceAll('http://127.0.0.1:8080', gateway.origin));
    };
    const site = stage.own(await Site.start({}, answer));
    gateway = stage.own(await ExampleGateway.start(configuration, site.origin));
    return this.#visit(stage, site, gateway);
  }

  static async #visit(stage, site, gateway) {
    const visitor = await stage.visitor();
    visitor.tolerate(new RegExp(`^a request to ${gateway.origin}/`), /Failed to load resource: net::ERR_/);
    const { page } = await visitor.open(`${site.origin}/index.html?gateway=${gateway.origin}`);
    return { page, gateway };
  }
}

/** The gateway of an example. What it follows from elsewhere is a store here, so that the scenario decides what is in it. */
class ExampleGateway {
  #process;

  static async start(configuration, origin, fill) {
    const folder = await mkdtemp(join(tmpdir(), 'watchtide-example-'));
    const file = join(folder, 'watchtide.yaml');
    await writeFile(file, asStore(configuration.replace(/http:\/\/[a-z0-9.]+:3000/, origin)));
    await fill?.(folder);
    const gateway = new ExampleGateway();
    const free = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--operations', '127.0.0.1:0'];
    const [process, [address]] = await Process.start(await build('cmd/gateway'), ['serve', '--config', file, ...free], listening);
    gateway.#process = process;
    gateway.origin = `http://${address}`;
    return gateway;
  }

  async put(watch, key, value) {
    const response = await fetch(`${this.origin}/v1/watches/${watch}/resources/${key}`, { method: 'PUT', body: JSON.stringify(value) });
    if (!response.ok) throw new Error(`PUT ${key}: ${response.status} ${await response.text()}`);
  }

  kill = () => this.#process.stop('SIGKILL');
  stop = this.kill;
}

const asStore = (text) =>
  text
    .replace(/^( {2}\w+): \{ type: (kubernetes|consul).*$/m, '$1: { type: store }')
    .replace(/(, group: [\w.]+)?, version: \w+, resource: \w+|, collection: health/, '');
