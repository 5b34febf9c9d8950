import type { Event, GoodbyeEvent } from './protocol.js';
import type { Stores } from './stores.js';
import { timer } from './timer.js';
import type { Receiver, StreamRequest, Transport } from './transport.js';

// The default of the gateway, until hello names the heartbeat.
const defaultHeartbeatMs = 15_000;

// A stream that is open for so long has had time enough, even if a watch of it cannot catch up.
const settledMs = 10_000;

/** How a stream ended, and what the server said about reconnecting. */
export interface StreamEnd {
  /** Missing if the server ended the stream cleanly. */
  readonly error?: unknown;
  readonly goodbye?: GoodbyeEvent | undefined;
  /** From `retry:`. */
  readonly retryMs?: number | undefined;
  /** When the last byte arrived. */
  readonly aliveAt: number;
  /** When `hello` arrived; undefined if it never did. */
  readonly openedAt?: number | undefined;
}

/**
 * One stream, from its request to its end: passes its events to the stores, and
 * cuts it off if it falls silent.
 */
export class Stream {
  readonly #abort = new AbortController();
  #heartbeatMs = defaultHeartbeatMs;
  #aliveAt = Date.now();
  #openedAt: number | undefined;
  #goodbye: GoodbyeEvent | undefined;
  #retryMs: number | undefined;
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly stores: Stores,
    private readonly transport: Transport,
    private readonly parse: (json: string) => unknown = JSON.parse,
  ) {}

  get open(): boolean {
    return this.#openedAt !== undefined;
  }

  /** It has brought its watches up to date, or has had the time to do so. */
  get settled(): boolean {
    return this.open && (this.stores.settled || Date.now() - this.#openedAt! >= settledMs);
  }

  async run(request: Omit<StreamRequest, 'signal'>): Promise<StreamEnd> {
    const { signal } = this.#abort;
    this.#aliveAt = Date.now();
    this.#guard();
    try {
      signal.throwIfAborted(); // while waiting for the token
      const aborted = new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
      await Promise.race([this.transport.read({ ...request, signal }, this.#receiver()), aborted]);
      return this.#end();
    } catch (error) {
      return this.#end(error);
    } finally {
      clearTimeout(this.#watchdog);
      this.cut('ended');
    }
  }

  /** Ends the stream. */
  cut(reason: string): void {
    this.#abort.abort(new Error(reason));
  }

  /** Cuts the stream off if nothing arrived for clearly longer than the heartbeat. */
  check(): void {
    const now = Date.now();
    this.#aliveAt = Math.min(this.#aliveAt, now); // the clock may have been set back
    const silent = now - this.#aliveAt;
    // Without the heartbeat, only the time until hello is limited.
    if (silent >= this.#limit && (this.transport.hearsHeartbeat || !this.open))
      this.cut(`nothing was received for ${Math.round(silent / 1000)} s`);
  }

  get #limit(): number {
    return 2 * this.#heartbeatMs;
  }

  #guard(): void {
    clearTimeout(this.#watchdog);
    const rest = this.#aliveAt + this.#limit - Date.now();
    this.#watchdog = timer(
      () => {
        this.check();
        if (!this.#abort.signal.aborted) this.#guard();
      },
      rest > 0 ? rest : this.#limit,
    );
  }

  #receiver(): Receiver {
    const { stores } = this;
    const live = (f: () => void) => {
      if (!this.#abort.signal.aborted) f();
    };
    return {
      alive: () => {
        this.#aliveAt = Date.now();
      },
      retry: (ms) => {
        this.#retryMs = ms;
      },
      event: (data) => live(() => this.#take(this.parse(data) as Event)),
      id: (id) => live(() => stores.commit(id)),
      flush: () => live(() => stores.publish()),
    };
  }

  #take(event: Event): void {
    if (event.type === 'goodbye') this.#goodbye = event;
    else if (event.type !== 'hello') this.stores.take(event);
    else {
      this.#openedAt = Date.now();
      this.#heartbeatMs = event.heartbeat_ms > 0 ? Number(event.heartbeat_ms) : defaultHeartbeatMs; // it may be a bigint
      this.#guard();
      this.stores.open();
    }
  }

  #end(error?: unknown): StreamEnd {
    return { error, goodbye: this.#goodbye, retryMs: this.#retryMs, aliveAt: this.#aliveAt, openedAt: this.#openedAt };
  }
}
