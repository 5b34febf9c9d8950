import type { AnswerRequest, Receiver, StreamRequest, Transport } from './transport.js';

/** A transport that can be given up. */
export type ClosableTransport = Transport & { close?(): void };

/** Creates a transport, or throws. failed is to be called when the transport turns out not to work, works when it turns out to work. */
export type TransportFactory = (failed: () => void, works: () => void) => ClosableTransport;

// The first transport may work again, for instance because an old worker is gone. It is
// tried again after this time, which doubles.
const retryMs = 60_000;
const maxRetryMs = 900_000;

// The time to show that it works.
const trialMs = 10_000;

/** Reads streams with the first transport that works, and returns to the first of all when it works again. */
export class FallbackTransport implements Transport {
  readonly hearsHeartbeat = true;
  readonly #reads = new Set<AbortController>(); // with the current transport
  #transport!: ClosableTransport;
  #index = -1;
  #retryMs = retryMs;
  #timer: ReturnType<typeof setTimeout> | undefined; // of the next trial, or of the current one
  #trial: ClosableTransport | undefined;
  #reading = 0;

  /** The last factory must not fail. */
  constructor(private readonly factories: readonly TransportFactory[]) {
    this.#next();
  }

  async read(request: StreamRequest, receiver: Receiver): Promise<void> {
    let { lastEventId } = request;
    const heard: Receiver = {
      alive: () => receiver.alive(),
      event: (data) => receiver.event(data),
      id: (id) => receiver.id((lastEventId = id)),
      retry: (ms) => receiver.retry(ms),
      flush: () => receiver.flush(),
    };
    this.#reading++;
    this.#schedule();
    try {
      while (!(await this.#readOnce({ ...request, lastEventId }, heard))); // with the next transport, after what has arrived
    } finally {
      if (--this.#reading === 0) this.#giveUp();
    }
  }

  hold(): () => void {
    return this.#transport.hold?.() ?? (() => {});
  }

  post(request: AnswerRequest): Promise<Response> {
    return this.#transport.post!(request);
  }

  hurry(): void {
    this.#transport.hurry?.();
  }

  // Returns false if another transport took over.
  async #readOnce(request: StreamRequest, receiver: Receiver): Promise<boolean> {
    const stop = new AbortController();
    const abort = () => stop.abort(request.signal.reason);
    this.#reads.add(stop);
    request.signal.addEventListener('abort', abort);
    try {
      await this.#transport.read({ ...request, signal: stop.signal }, receiver);
    } catch (error) {
      if (this.#reads.has(stop)) throw error;
      return false;
    } finally {
      this.#reads.delete(stop);
      request.signal.removeEventListener('abort', abort);
    }
    return true;
  }

  #next(): void {
    const index = ++this.#index;
    try {
      this.#transport = this.factories[index]!(
        () => {
          if (this.#index === index) this.#fallBack();
        },
        () => {},
      );
    } catch (error) {
      if (index === this.factories.length - 1) throw error;
      this.#next();
    }
  }

  #fallBack(): void {
    if (this.#index === this.factories.length - 1) return;
    const failed = this.#transport;
    this.#next();
    this.#restart();
    failed.close?.();
    this.#schedule();
  }

  #restart(): void {
    const reads = [...this.#reads];
    this.#reads.clear();
    for (const stop of reads) stop.abort();
  }

  #schedule(): void {
    if (this.#index === 0 || this.#timer || this.#reading === 0) return;
    this.#timer = setTimeout(() => this.#try(), this.#retryMs);
    this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs);
  }

  #try(): void {
    this.#timer = setTimeout(() => this.#failed(), trialMs);
    try {
      const trial = this.factories[0]!(
        () => {
          if (this.#trial === trial) this.#failed();
          else if (this.#transport === trial) this.#fallBack();
        },
        () => {
          if (this.#trial === trial) this.#return(trial);
        },
      );
      this.#trial = trial;
    } catch {
      this.#failed();
    }
  }

  #failed(): void {
    this.#giveUp();
    this.#schedule();
  }

  #giveUp(): void {
    this.#timer = void clearTimeout(this.#timer);
    this.#trial?.close?.();
    this.#trial = undefined;
  }

  #return(trial: ClosableTransport): void {
    this.#timer = void clearTimeout(this.#timer);
    this.#trial = undefined;
    this.#transport = trial;
    this.#index = 0;
    this.#restart();
  }
}
