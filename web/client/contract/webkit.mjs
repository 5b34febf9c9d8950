import { spawn } from 'node:child_process';
import { freePort } from '../../dashboard/browser/stage/port.mjs';
import { until } from '../../dashboard/browser/stage/until.mjs';

/** A session with WebKitGTK, which speaks only the classic WebDriver (W3C), on a display of its own. */
export class WebKit {
  #driver;
  #origin;
  #path;
  #turn = Promise.resolve(); // of the pages, since a command is for the window of the last switch

  static async launch(program) {
    const webkit = new WebKit();
    const port = await freePort();
    webkit.#origin = `http://127.0.0.1:${port}`;
    // Its sandbox needs namespaces that a container may not allow. It shows only our own page.
    const env = { ...process.env, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1' };
    const args = ['-a', 'WebKitWebDriver', `--port=${port}`];
    webkit.#driver = spawn('xvfb-run', args, { env, stdio: 'ignore', detached: true });
    try {
      await until('the driver answers', () => webkit.#ask('/status', undefined, 'GET').catch(() => undefined));
      const options = { binary: program, args: ['--automation'] };
      const { sessionId } = await webkit.#ask('/session', { capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options } } });
      webkit.#path = `/session/${sessionId}`;
      await webkit.#ask(`${webkit.#path}/timeouts`, { script: 200_000 });
      return webkit;
    } catch (error) {
      await webkit.close();
      throw error;
    }
  }

  /** Opens another tab. */
  async newPage() {
    const { handle } = await this.#ask(`${this.#path}/window/new`, { type: 'tab' });
    return new Page((path, body, method) => this.#askIn(handle, path, body, method));
  }

  #askIn(handle, path, body, method) {
    const answer = this.#turn.then(async () => {
      await this.#ask(`${this.#path}/window`, { handle });
      return this.#ask(`${this.#path}${path}`, body, method);
    });
    this.#turn = answer.catch(() => {});
    return answer;
  }

  goto = (url) => this.#ask(`${this.#path}/url`, { url });

  /** Calls a function of the page with an argument, and returns what its promise is settled with. */
  async call(name, argument) {
    const script = `const done = arguments[1]; globalThis.${name}(arguments[0]).then(done, (error) => done(String(error)));`;
    return this.#ask(`${this.#path}/execute/async`, { script, args: [argument] });
  }

  exists = (name) => this.#ask(`${this.#path}/execute/sync`, { script: `return globalThis.${name} !== undefined`, args: [] });

  async close() {
    if (this.#path) await this.#ask(this.#path, undefined, 'DELETE').catch(() => {});
    process.kill(-this.#driver.pid);
  }

  async #ask(path, body, method = 'POST') {
    const response = await fetch(this.#origin + path, { method, ...(body && { body: JSON.stringify(body) }) });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${path}: ${value?.error}: ${value?.message}`);
    return value;
  }
}

/** A tab, with the methods of those of Puppeteer. */
class Page {
  #ask;

  constructor(ask) {
    this.#ask = ask;
  }

  goto = (url) => this.#ask('/url', { url });
  goBack = () => this.#ask('/back', {});
  reload = () => this.#ask('/refresh', {});

  /** Calls a function in the page, or evaluates an expression, and returns what its promise is settled with. */
  async evaluate(what, ...args) {
    const call = typeof what === 'function' ? `(${what})(...args)` : what;
    const script = `const args = [...arguments], done = args.pop();
      Promise.resolve().then(() => ${call}).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
    const { value, error } = await this.#ask('/execute/async', { script, args });
    if (error) throw new Error(error);
    return value;
  }
}
