import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Tab } from './tab.mjs';
import { patience } from './until.mjs';

const failures = fileURLToPath(new URL('../failures/', import.meta.url));

/** A user with a separate browser: its tabs share everything with each other, and nothing with other visitors. */
export class Visitor {
  /** The console messages of all tabs. */
  log = [];
  /** Errors, violations of the policy, and requests to other origins. */
  #complaints = [];
  #tolerated = [];
  #tabs = [];
  /** Pages whose renderer has crashed. */
  #crashed = new Set();

  static async arrive(browser, options = {}) {
    const visitor = new Visitor();
    visitor.context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    visitor.context.setDefaultTimeout(patience);
    await visitor.context.addInitScript(reportPolicy);
    return visitor;
  }

  /** Opens a page and returns its tab, without waiting for its content. */
  async open(url) {
    const page = await this.context.newPage();
    this.#listen(page, new URL(url).origin);
    const tab = new Tab(page);
    this.#tabs.push(tab);
    await page.goto(url);
    return tab;
  }

  /** Ignores errors that the scenario itself causes. */
  tolerate(...patterns) {
    this.#tolerated.push(...patterns);
  }

  get complaints() {
    return this.#complaints.filter((text) => !this.#tolerated.some((pattern) => pattern.test(text)));
  }

  /** Whether Chromium's renderer of one of the tabs has crashed. */
  get crashed() {
    return this.#crashed.size > 0;
  }

  async leave() {
    await this.context.close();
  }

  /** Keeps evidence of a failure; returns the folder. */
  async keep(name) {
    const folder = `${failures}${name.replaceAll(/\W+/g, '-')}/`;
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}console.log`, this.log.join('\n'));
    for (const [i, { page }] of this.#tabs.entries()) {
      if (page.isClosed()) continue;
      try {
        await writeFile(`${folder}tab-${i}.html`, await page.content());
        await page.screenshot({ path: `${folder}tab-${i}.png`, timeout: 5_000 });
      } catch (error) {
        if (!this.#crashed.has(page)) throw error;
      }
    }
    return folder;
  }

  #listen(page, origin) {
    page.on('crash', () => {
      this.log.push(`crashed: ${page.url()}`);
      this.#crashed.add(page);
    });
    page.on('console', (message) => {
      this.log.push(`${message.type()}: ${message.text()} ${message.location().url}`);
      if (message.type() === 'error') this.#complaints.push(`${message.text()} ${message.location().url}`.trim());
    });
    page.on('pageerror', (error) => {
      this.log.push(`uncaught: ${error.stack}`);
      this.#complaints.push(`uncaught: ${error.message}`);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (['http:', 'https:'].includes(url.protocol) && url.origin !== origin) this.#complaints.push(`a request to ${url.href}`);
    });
  }
}

// Runs in the page.
function reportPolicy() {
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile, lineNumber }) => {
    console.error(`securitypolicyviolation: ${violatedDirective} ${blockedURI} at ${sourceFile}:${lineNumber}`);
  });
}
