import { hashOf } from './digest.js';
import { type RefusedError, refusedBy } from './errors.js';
import { startOfValue, valueText } from './json_text.js';
import type { Event, GoodbyeEvent, UpsertEvent } from './protocol.js';
import { pause, repair, TooMuchError } from './repair.js';
import { specsOf, viewParameters } from './spec.js';
import type { Store } from './store.js';
import type { Stores } from './stores.js';
import { timer } from './timer.js';
import type { AnswerRequest, Receiver, StreamRequest, Transport } from './transport.js';
import type { Hash } from './xxh64.js';

// The default of the gateway, until hello names the heartbeat.
const defaultHeartbeatMs = 15_000;

// A stream that is open for so long has had time enough, even if a watch of it cannot catch up.
const settledMs = 10_000;

// The time to make a store whole.
const repairMs = 20_000;

// So often in a row it is no failure that a state is gone: a replica that does not have it keeps states that the others have too from
// then on.
const maxGone = 5;

// So often a request about a state is made again where the state is gone, each time after a random wait of up to so long: behind a proxy
// another replica may answer, and the one that has sent the digest has the state.
const mostElsewhere = 8;
const elsewhereMs = 50;

// The longest random wait before a request that was refused for now is made again, at first.
const retryMs = 2_000;

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
  #live = false; // it was up to date when something arrived last
  #changed = false; // resources have arrived since
  #name = ''; // by which the gateway knows it
  readonly #mending = new Set<Store>();
  #request!: Omit<StreamRequest, 'signal'>;

  /**
   * hashes: those of resources are computed, so that what the stores hold can be verified. arrived is called after
   * everything that arrived together; changed: resources were among it, and the stream had been up to date before.
   */
  constructor(
    private readonly stores: Stores,
    private readonly transport: Transport,
    private readonly hashes: boolean,
    private readonly parse: (json: string) => unknown = JSON.parse,
    private readonly arrived: (changed: boolean) => void = () => {},
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
    this.#request = request;
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
      event: (data, bytes, at) => live(() => this.#take(...this.#read(data, bytes, at))),
      id: (id) =>
        live(() => {
          stores.commit(id);
          this.#mendAll();
        }),
      flush: () =>
        live(() => {
          stores.publish();
          this.arrived(this.#live && this.#changed);
          this.#live = this.settled;
          this.#changed = false;
        }),
    };
  }

  // Returns an event, and the hash of the resource of an upsert.
  #read(data: string, bytes?: Uint8Array, at = 0): [Event, Hash?] {
    const event = this.parse(data) as Event;
    if (!this.hashes || event.type !== 'upsert') return [event];
    const last = lastName(event);
    const start = bytes && startOfValue(data, last);
    if (start) return [event, hashOf('', event, bytes.subarray(at + start, at + data.length - 1))];
    const text = valueText(data, last);
    return text === undefined ? [event] : [event, hashOf(text, event)];
  }

  #mendAll(): void {
    for (const store of this.stores.differing) if (!this.#mending.has(store)) void this.#mend(store);
  }

  // Makes what a store holds that of the gateway. If that fails, the stream ends, and the next one begins where what is shown ends.
  async #mend(store: Store): Promise<void> {
    const { signal } = this.#abort;
    const fail = (reason: string, failed: boolean) => {
      if (signal.aborted) return;
      store.failed = failed;
      this.cut(`${store.watch} could not be verified: ${reason}`);
    };
    const late = setTimeout(() => fail('it took longer than 20 s', store.failed ?? true), repairMs);
    this.#mending.add(store);
    store.failed = undefined;
    try {
      const repaired = await repair(store.differing!, {
        ask: (path, query) => this.#ask(store, path, query),
        take: (text) => {
          const [event, hash] = this.#read(`{"type":"upsert","watch":${JSON.stringify(store.watch)},${text.slice(1)}`);
          store.mend(event as UpsertEvent, hash);
        },
        signal,
      });
      this.stores.mended(store, repaired);
      this.#mending.delete(store);
      this.#mendAll();
      this.stores.publish();
    } catch (error) {
      if (error instanceof TooMuchError) store.failures ||= 1; // a second attempt would find the same
      const { status, message } = error as RefusedError;
      fail(message, status !== 410 || (store.failed ?? ++store.gone > maxGone));
    } finally {
      clearTimeout(late);
    }
  }

  // Where the state is gone, it asks some more times. While there is no answer for now, from a gateway without room for it or from a proxy
  // without a gateway, it asks again, after the time that was named and a random one.
  async #ask(store: Store, path: string, query: URLSearchParams): Promise<string> {
    const { signal } = this.#abort;
    const [spec] = specsOf(new URLSearchParams(store.query));
    for (const name of viewParameters) if (spec![name]) query.set(name, String(spec![name]));
    const request = this.#beside(`watches/${encodeURIComponent(store.watch)}/digests/${store.differing!.differs}${path}?${query}`);
    for (let mostMs = retryMs, elsewhere = 0; ; ) {
      try {
        const response = await this.transport.ask!(request);
        if (!response.ok) throw await refusedBy(response);
        const text = await response.text();
        signal.throwIfAborted();
        return text;
      } catch (error) {
        const { status, retryAfterMs = 0 } = error as Partial<RefusedError>;
        if (!signal.aborted && status === 410 && elsewhere++ < mostElsewhere) {
          await pause(Math.random() * elsewhereMs, signal);
          continue;
        }
        if (signal.aborted || (status && status !== 429 && status < 502)) throw error;
        store.failed = false;
        this.#retryMs = retryAfterMs || this.#retryMs; // if the stream ends before that
        await pause(retryAfterMs + Math.random() * mostMs, signal);
        mostMs *= 2;
      }
    }
  }

  /** Asks to move a window, with the parameters of a query; undefined: that cannot be asked for. */
  move(query: string): Promise<Response> | undefined {
    if (!this.#name) return undefined;
    return this.transport.post?.(this.#beside(`streams/${encodeURIComponent(this.#name)}/window?${query}`));
  }

  // Returns a request to the same gateway.
  #beside(path: string): AnswerRequest {
    const { url, headers, credentials } = this.#request;
    return { url: url.slice(0, url.lastIndexOf('/events?') + 1) + path, headers, credentials, signal: this.#abort.signal };
  }

  #take(event: Event, hash?: Hash): void {
    this.#changed ||= 'key' in event;
    if (event.type === 'goodbye') this.#goodbye = event;
    else if (event.type !== 'hello') this.stores.take(event, hash);
    else {
      this.#openedAt = Date.now();
      this.#name = event.stream ?? '';
      this.#heartbeatMs = event.heartbeat_ms > 0 ? Number(event.heartbeat_ms) : defaultHeartbeatMs; // it may be a bigint
      this.#guard();
      this.stores.open();
    }
  }

  #end(error?: unknown): StreamEnd {
    return { error, goodbye: this.#goodbye, retryMs: this.#retryMs, aliveAt: this.#aliveAt, openedAt: this.#openedAt };
  }
}

// The name of the last member of an event, as it was parsed.
function lastName(event: object): string {
  let last = '';
  for (const name in event) last = name;
  return last;
}
