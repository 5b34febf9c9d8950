import { build } from './build.mjs';
import { Process } from './process.mjs';

/** Runs the program in ../upstream: two watches of any size, which change at any rate. */
export class Upstream {
  #process;
  #control;

  static async start() {
    const upstream = new Upstream();
    const program = await build('web/dashboard/browser/upstream');
    const [process, { grpc, control }] = await Process.start(program, [], (line) => line.startsWith('{') && JSON.parse(line));
    upstream.#process = process;
    upstream.#control = control;
    upstream.address = grpc;
    for (const watch of ['services', 'nodes', 'revocations']) await upstream.fill(watch, 0);
    return upstream;
  }

  /** kind: what the rows are; service instances unless it is `node`. */
  fill = (watch, rows, bytes = 300, kind = '') => this.#order('fill', { watch, rows, bytes, kind });
  change = (watch, per_second) => this.#order('change', { watch, per_second });
  put = (watch, key, value) => this.#order('put', { watch, key, value });
  delete = (watch, key) => this.#order('delete', { watch, key });
  /** Cuts every stream and rejects connections, until comeBack. */
  leave = () => this.#order('leave', {});
  comeBack = () => this.#order('come-back', {});
  stop = () => this.#process.stop();

  async #order(what, order) {
    const response = await fetch(`http://${this.#control}/${what}`, { method: 'POST', body: JSON.stringify(order) });
    if (!response.ok) throw new Error(`the upstream cannot ${what} ${JSON.stringify(order)}: ${await response.text()}`);
  }
}
