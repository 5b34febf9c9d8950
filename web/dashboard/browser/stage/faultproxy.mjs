import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** A TCP proxy that counts bytes, and can fall silent without closing anything. */
export class FaultProxy {
  /** Bytes carried since the last call of reset. */
  toBrowser = 0;
  toServer = 0;
  /** The target of new connections, host:port. */
  target;
  #silent = false;
  #pairs = new Set();
  #server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (browser) => this.#carry(browser));

  static async start(target) {
    const proxy = new FaultProxy();
    proxy.target = target;
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    proxy.origin = `http://127.0.0.1:${proxy.#server.address().port}`;
    return proxy;
  }

  reset() {
    this.toBrowser = this.toServer = 0;
  }

  /** Stops forwarding, in current and new connections, without closing any. */
  stall() {
    this.#silent = true;
    for (const pair of this.#pairs) pair.forEach((socket) => socket.pause());
  }

  /** Resumes forwarding, from where it stopped. */
  heal() {
    this.#silent = false;
    for (const pair of this.#pairs) pair.forEach((socket) => socket.resume());
  }

  async stop() {
    this.#server.close();
    for (const pair of this.#pairs) pair.forEach((socket) => socket.destroy());
    await once(this.#server, 'close');
  }

  #carry(browser) {
    const [host, port] = this.target.split(':');
    const server = connect({ host, port: Number(port), allowHalfOpen: true });
    const pair = [browser, server];
    this.#pairs.add(pair);
    this.#pump(server, browser, (bytes) => {
      this.toBrowser += bytes;
    });
    this.#pump(browser, server, (bytes) => {
      this.toServer += bytes;
    });
    for (const socket of pair) {
      socket.on('error', () => {}); // close follows
      socket.on('close', () => {
        pair.forEach((other) => other.destroy());
        this.#pairs.delete(pair);
      });
    }
    if (this.#silent) pair.forEach((socket) => socket.pause());
    else pair.forEach((socket) => socket.resume());
  }

  #pump(from, to, count) {
    from.on('data', (data) => {
      count(data.length);
      if (!to.write(data)) from.pause();
    });
    to.on('drain', () => {
      if (!this.#silent) from.resume();
    });
    from.on('end', () => to.end());
  }
}
