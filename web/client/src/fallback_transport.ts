import type { Receiver, StreamRequest, Transport } from './transport.js';

/** One way to read streams, or an exception; failed is called when it turns out not to work. */
export type Way = (failed: () => void) => Transport;

/** Reads streams by the first way that works. */
export class Ways implements Transport {
  readonly hearsHeartbeat = true;
  readonly #ways: Way[];
  readonly #reads = new Set<AbortController>(); // by the way that is taken now
  #transport!: Transport;

  /** The last of the ways must not fail. */
  constructor(ways: readonly Way[]) {
    this.#ways = [...ways];
    this.#next();
  }

  async read(request: StreamRequest, receiver: Receiver): Promise<void> {
    const stop = new AbortController();
    this.#reads.add(stop);
    request.signal.addEventListener('abort', () => stop.abort(request.signal.reason));
    try {
      return await this.#transport.read({ ...request, signal: stop.signal }, receiver);
    } catch (error) {
      if (this.#reads.delete(stop)) throw error;
    }
    await this.read(request, receiver); // another way
  }

  #next(): void {
    const way = this.#ways.shift()!;
    const before = this.#ways.length;
    try {
      this.#transport = way(() => { if (this.#ways.length === before) this.#fail(); });
    } catch (error) {
      if (before === 0) throw error;
      this.#next();
    }
  }

  #fail(): void {
    if (this.#ways.length === 0) return;
    this.#next();
    const reads = [...this.#reads];
    this.#reads.clear();
    for (const stop of reads) stop.abort();
  }
}
