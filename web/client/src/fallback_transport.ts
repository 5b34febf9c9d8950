import type { Receiver, StreamRequest, Transport } from './transport.js';

/** Creates a transport, or throws. failed is to be called when the transport turns out not to work. */
export type TransportFactory = (failed: () => void) => Transport;

/** Reads streams with the first transport that works. */
export class FallbackTransport implements Transport {
  readonly hearsHeartbeat = true;
  readonly #factories: TransportFactory[];
  readonly #reads = new Set<AbortController>(); // with the current transport
  #transport!: Transport;

  /** The last factory must not fail. */
  constructor(factories: readonly TransportFactory[]) {
    this.#factories = [...factories];
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
    await this.read(request, receiver); // with the next transport
  }

  hurry(): void {
    this.#transport.hurry?.();
  }

  #next(): void {
    const create = this.#factories.shift()!;
    const left = this.#factories.length;
    try {
      this.#transport = create(() => { if (this.#factories.length === left) this.#fallBack(); });
    } catch (error) {
      if (left === 0) throw error;
      this.#next();
    }
  }

  #fallBack(): void {
    if (this.#factories.length === 0) return;
    this.#next();
    const reads = [...this.#reads];
    this.#reads.clear();
    for (const stop of reads) stop.abort();
  }
}
