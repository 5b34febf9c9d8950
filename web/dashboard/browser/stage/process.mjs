import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { patience } from './until.mjs';

// No server outlives the run, however it ends.
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** A server that runs as a child. */
export class Process {
  /** Its output, to debug failures. */
  lines = [];
  #child;
  #ended;

  /** Starts a program; returns it with the first truthy result of ready, which is called with each line. */
  static async start(program, args, ready) {
    const started = new Process(program, args);
    try {
      const said = await started.#until(ready);
      started.#letGo();
      return [started, said];
    } catch (error) {
      await started.stop('SIGKILL');
      throw error;
    }
  }

  constructor(program, args) {
    this.name = program;
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    running.add(this.#child);
    this.#ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', resolve);
    });
    this.#ended.catch(() => {}).finally(() => running.delete(this.#child));
  }

  get pid() {
    return this.#child.pid;
  }

  signal = (name) => this.#child.kill(name);

  /** Ends it, and waits until it has ended. */
  async stop(signal = 'SIGTERM') {
    this.#child.kill(signal);
    const late = setTimeout(() => this.#child.kill('SIGKILL'), patience);
    await this.#ended.catch(() => {}); // it never started
    clearTimeout(late);
  }

  #until(ready) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(this.#failure('is not ready')), patience);
      this.#ended.finally(() => clearTimeout(late)).catch(() => {});
      const read = (line) => {
        this.lines.push(line);
        const said = ready(line);
        if (!said) return;
        clearTimeout(late);
        resolve(said);
      };
      for (const stream of [this.#child.stdout, this.#child.stderr]) createInterface({ input: stream }).on('line', read);
      this.#ended.then(() => reject(this.#failure('ended before it was ready')), reject);
    });
  }

  // The run may end, which ends the program as well.
  #letGo() {
    this.#child.unref();
    for (const pipe of this.#child.stdio) pipe.unref();
  }

  #failure(what) {
    return new Error(`${this.name} ${what}:\n${this.lines.join('\n')}`);
  }
}

/** Runs a program to its end; if it fails, throws an error with its output. */
export async function run(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      output += data;
    });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${output}`);
}
