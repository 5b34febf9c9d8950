import type { Receiver, StreamRequest, Transport } from './transport.js';

/** One way to read streams, or an exception; failed is called when it turns out not to work. */
export type Way = (failed: () => void) => Transport;

/** Reads streams by the first way that works. */
export class Ways implements Transport {
  readonly hearsHeartbeat = true;
  readonly #ways: Way[];
  #transport!: Transport;
  #failed!: AbortController;

  /** The last of the ways must not fail. */
  constructor(ways: readonly Way[]) {
    this.#ways = [...ways];
    this.#next();
  }

  async read(request: StreamRequest, receiver: Receiver): Promise<void> {
    const failed = this.#failed;
    const either = new AbortController();
    for (const { signal } of [request, failed]) signal.addEventListener('abort', () => either.abort(signal.reason));
    try {
      await this.#transport.read({ ...request, signal: either.signal }, receiver);
    } catch (error) {
      if (!failed.signal.aborted || request.signal.aborted) throw error;
      await this.read(request, receiver);
    }
  }

  #next(): void {
    const failed = this.#failed = new AbortController();
    try {
      this.#transport = this.#ways.shift()!(() => this.#fail(failed));
    } catch (error) {
      if (this.#ways.length === 0) throw error;
      this.#next();
    }
  }

  #fail(failed: AbortController): void {
    if (failed.signal.aborted || this.#ways.length === 0) return;
    this.#next();
    failed.abort();
  }
}
