import { readFile } from 'node:fs/promises';

/** The processes that run the pages and workers of a browser. */
export class Renderers {
  #cdp;

  static async of(browser) {
    const renderers = new Renderers();
    renderers.#cdp = await browser.newBrowserCDPSession();
    return renderers;
  }

  /** Returns their CPU time in seconds and their memory in bytes, with their part of shared memory. */
  async usage() {
    const { processInfo } = await this.#cdp.send('SystemInfo.getProcessInfo');
    const all = processInfo.filter(({ type }) => type === 'renderer');
    const memory = await Promise.all(all.map(({ id }) => proportionalSetSize(id)));
    return { cpu: sum(all.map(({ cpuTime }) => cpuTime)), memory: sum(memory) };
  }
}

async function proportionalSetSize(pid) {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)[1]) * 1024;
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
