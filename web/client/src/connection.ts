import { Backoff, healthyMs } from './backoff.js';
import { RefusedError } from './errors.js';
import { PageLifecycle } from './page_lifecycle.js';
import { Pause } from './pause.js';
import type { RateChooser, RateControl } from './rate_control.js';
import type { OnVerify, Store } from './store.js';
import { closed, Stores } from './stores.js';
import { Stream, type StreamEnd } from './stream.js';
import { limited } from './time_limit.js';
import { replaced, type Transport } from './transport.js';

// Watches that are added or removed within this time share one request. It doubles with each stream that
// ends for other watches before it has settled, so that streams have the time that they need.
const debounceMs = 50;
const maxDebounceMs = 30_000;

// The time to replace a stream that ended in good order. Until then, the data is
// as fresh as that of a silent stream. It is one heartbeat.
const graceMs = 15_000;

// So long after a gateway has refused digests streams have none. Then they ask again: another version may run by then.
const undigestedMs = 600_000;

// The least time between two attempts, however often the network comes back.
const minIntervalMs = 1_000;
const maxIntervalMs = 30_000;

/**
 * Called when a connection fails or is refused, before the next attempt. final: the
 * refusal is the gateway's own, and would be repeated. May answer with other headers for
 * the next attempts, even after a final refusal, or with `stop`, which closes the stores.
 */
export type OnError = (error: Error, hint: { readonly final: boolean }) => ErrorAnswer | Promise<ErrorAnswer>;

type ErrorAnswer = void | 'stop' | { readonly headers: Readonly<Record<string, string>> };

export interface ConnectionOptions {
  /** `…/v1/events` */
  readonly url: string;
  readonly transport: Transport;
  readonly credentials?: RequestCredentials;
  readonly headers?: Readonly<Record<string, string>>;
  readonly getToken?: (asked: { expired: boolean }) => string | undefined | Promise<string | undefined>;
  readonly onError?: OnError;
  readonly onVerify?: OnVerify;
  /** Whether what stores hold is verified by digests; `on` unless set. */
  readonly digest?: 'on' | 'off';
  /** How often changes are sent at most. */
  readonly maxRate?: string | RateChooser;
  /** Moves stores, for which a stream has no room, to other connections. */
  readonly move: (stores: Store[]) => void;
  readonly parse?: (json: string) => unknown;
  /** The time after which a hidden tab closes its stream, in ms. */
  readonly hiddenMs?: number;
}

/**
 * Keeps one stream open for as long as there are stores: stream after stream, each
 * from the newest id, with the pauses that the server and the back-off demand.
 *
 * Everything happens in #run, a single loop; the other methods only wake it up.
 */
export class Connection {
  readonly stores: Stores;
  /** A stream has no room for further watches. */
  full = false;
  readonly #backoff = new Backoff();
  readonly #pause = new Pause();
  readonly #page: PageLifecycle;
  readonly #control: RateControl;
  #undigestedUntil = 0; // the gateway is older than digests
  #rate: string | undefined; // that of the newest request
  #withoutRate: boolean | undefined; // the gateway is older than rates
  #stream: Stream | undefined;
  #running: boolean | undefined;
  #closed: boolean | undefined;
  #immediately: boolean | undefined; // the set of watches changed: no pause before the next stream
  #suspended = ''; // the reason why the page may not hold a connection
  #expired = false; // the server said that the token has expired, or refused it
  #refreshed: boolean | undefined; // another token was requested because of the last one, and no stream has lasted with it yet
  #headers: Readonly<Record<string, string>> | undefined;
  readonly #ended = new AbortController();
  #attemptAt = 0;
  #hurries = 0; // attempts that were made early, since a healthy stream
  #aliveAt = 0; // of the newest stream that was open
  #grace: ReturnType<typeof setTimeout> | undefined;
  #debounce: ReturnType<typeof setTimeout> | undefined;
  #debounceMs = debounceMs;
  #changedAt = 0; // when the set of watches changed
  #dueAt = Infinity; // when it is requested

  constructor(private readonly options: ConnectionOptions) {
    this.stores = new Stores(options.onVerify);
    this.#headers = options.headers;
    const { maxRate } = options;
    this.#control = typeof maxRate === 'function' ? maxRate(() => this.#followRate()) : { rate: maxRate };
    this.#page = new PageLifecycle(options.hiddenMs, {
      online: () => this.hurry(),
      shown: () => this.#resume(),
      away: (reason) => this.#suspend(reason),
    });
  }

  /** The set of watches has changed: requests it. */
  changed(): void {
    if (this.#closed) return;
    if (!this.#running) return void this.#run();
    const now = performance.now();
    if (!this.stores.size || (this.#stream?.settled && now - this.#changedAt > this.#debounceMs)) this.#debounceMs = debounceMs;
    this.#changedAt = now;
    this.#dueAt = Math.min(this.#dueAt, now + this.#debounceMs);
    clearTimeout(this.#debounce);
    this.#debounce = setTimeout(() => this.#resubscribe(), this.#dueAt - now);
  }

  /** Does what is due, in case timers are late. */
  check(): void {
    // The last watch was removed: the page may be about to freeze.
    if (performance.now() >= this.#dueAt || (this.#dueAt < Infinity && !this.stores.size)) this.#resubscribe();
    this.#stream?.check();
    this.#pause.check();
  }

  close(error?: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ended.abort();
    this.#page.close();
    this.#control.close?.();
    clearTimeout(this.#debounce);
    clearTimeout(this.#grace);
    this.#stream?.cut('ended');
    this.#pause.end();
    this.stores.disconnect(closed(error));
  }

  async #run(): Promise<void> {
    this.#running = true;
    await undefined; // all watches added in this task share one request
    while (this.#wanted) {
      while (this.#suspended && this.#wanted) await this.#pause.begin(Infinity);
      if (!this.#wanted) break;
      this.#attemptAt = performance.now(); // nobody sets that clock back
      const end = await this.#attempt();
      if (end.openedAt !== undefined && !(this.#grace && end.goodbye)) this.#aliveAt = end.aliveAt;
      if (!this.#wanted) break;
      if (this.#suspended) this.#lose(this.#suspended);
      else this.#immediately ? this.#replace('the stream ended') : await this.#recover(end);
    }
    this.#grace = void clearTimeout(this.#grace);
    this.#running = this.#immediately = false;
    if (!this.#closed) this.stores.disconnect({ state: 'connecting', since: Date.now(), reason: '' });
  }

  get #wanted(): boolean {
    return !this.#closed && !!this.stores.size;
  }

  async #attempt(): Promise<StreamEnd> {
    this.#immediately = false;
    this.#withoutRate = false;
    for (;;) {
      const digests = this.#digests && !this.stores.undigested && performance.now() >= this.#undigestedUntil;
      const end = await this.#read(digests);
      const { status, problem } = (end.error ?? {}) as Partial<RefusedError>;
      const parameter = status === 400 && this.#wanted && !this.#cut && problem?.parameter;
      // An older gateway is asked again without what it does not know.
      if (digests && (parameter === 'digest' || parameter === 'resume')) this.#undigestedUntil = performance.now() + undigestedMs;
      else if (this.#rate && parameter === 'max_rate') this.#withoutRate = true;
      else return end;
    }
  }

  // Hashes are kept also of what an older gateway sends, for when there is a newer one.
  get #digests(): boolean {
    const { transport, digest } = this.options;
    return transport.ask !== undefined && digest !== 'off';
  }

  // The client itself has ended the stream.
  get #cut(): boolean {
    return !!this.#immediately || this.#suspended !== '' || !!this.#closed;
  }

  async #read(digests: boolean): Promise<StreamEnd> {
    const { transport, parse, url, credentials = 'same-origin' } = this.options;
    const stream = (this.#stream = new Stream(this.stores, transport, this.#digests, parse, (changed) => this.#arrived(changed)));
    try {
      const headers = await this.#authorized();
      if (this.#suspended) stream.cut(this.#suspended);
      this.#rate = this.#withoutRate ? undefined : this.#control.rate;
      const verified = digests ? `&digest=1${this.stores.verifiable ? '&resume=digest' : ''}` : '';
      const current = () => `${url}?${this.stores.request(this.#rate)}${verified}`;
      return await stream.run({ url: current(), current, lastEventId: this.stores.position, headers, credentials });
    } catch (error) {
      // thrown by getToken
      return { error, aliveAt: Date.now() };
    } finally {
      // It has taken the place of the one before in time.
      if (stream.open && this.stores.settled) this.#grace = void clearTimeout(this.#grace);
      this.stores.ended();
      this.#stream = undefined;
    }
  }

  // Something has arrived.
  #arrived(changed: boolean): void {
    if (changed) this.#control.changed?.();
    this.#followRate();
  }

  // Another rate takes another stream, which waits until this one has brought its watches up to date.
  #followRate(): void {
    if (!this.#withoutRate && this.#rate !== this.#control.rate) this.replace();
  }

  /** Asks for all that is wanted by another stream, if this one has brought its watches up to date. */
  replace(): void {
    if (!this.#stream?.settled) return;
    this.#immediately = true;
    this.#stream.cut(replaced);
  }

  /** The stream is open, and goes on. */
  get open(): boolean {
    return !!this.#stream?.open && !this.#cut;
  }

  /** Asks to move a window of the open stream; undefined: that cannot be asked for. */
  move(query: string): Promise<Response> | undefined {
    return this.#stream?.move(query);
  }

  /** Stops following a watch that it follows. */
  remove(watch: string): void {
    this.stores.remove(watch);
    this.full = false;
    this.changed();
  }

  async #authorized(): Promise<Record<string, string>> {
    const { getToken } = this.options;
    const token = getToken && (await limited('getToken', getToken({ expired: this.#expired }), this.#ended.signal));
    this.#expired = false;
    return { ...this.#headers, ...(token && { Authorization: `Bearer ${token}` }) };
  }

  // Reports a stream that ended, and waits until the next may begin.
  async #recover({ error, goodbye, retryMs, openedAt, aliveAt }: StreamEnd): Promise<void> {
    const refusal = error instanceof RefusedError ? error : undefined;
    const lastedMs = openedAt === undefined ? 0 : aliveAt - openedAt;
    const ended = goodbye?.reason === 'token_expired';
    this.#expired = ended || refusal?.status === 401;
    // A stream that ends at once because of its token is no reason to believe the next one.
    if (ended ? lastedMs >= healthyMs : openedAt !== undefined) this.#refreshed = false;
    // The first refusal of a token is followed at once by an attempt with another one.
    if (this.#expired && !this.#refreshed && this.options.getToken) return void (this.#refreshed = true);
    const verdict = error instanceof Error && !goodbye && (await this.#judge(error));
    if (verdict === 'stop') return this.close(error as Error);
    if (refusal?.status === 414 && !refusal.problem?.watch && this.stores.size > 1) return this.#split();
    if (verdict === 'final') return this.#refused(error as RefusedError);
    if (!this.#wanted) return;
    const reason = goodbye ? `the server said goodbye: ${goodbye.reason}` : ((error as Error | undefined)?.message ?? 'the stream ended');
    // The answer to the next request says which of the watches it is, or that it is all of them.
    if (goodbye?.reason === 'revoked' && this.stores.size < 2) return this.close(new RefusedError(403, undefined, undefined, reason));
    goodbye && openedAt !== undefined ? this.#replace(reason) : this.#lose(reason);
    if (lastedMs >= healthyMs) this.#hurries = 0;
    const demanded = [goodbye?.retry_ms, refusal?.retryAfterMs].map(Number).find((ms) => ms > 0); // a server may send anything
    const wait = this.#backoff.ended({ lastedMs, goodbye: goodbye?.reason, askedMs: demanded ?? retryMs ?? 0 });
    this.options.transport.waits?.(wait);
    await this.#pause.begin(wait, demanded !== undefined);
  }

  // Asks the page what to do; undefined: try again. One that throws, or does not answer, has no say.
  async #judge(error: Error): Promise<'final' | 'stop' | undefined> {
    const { onError } = this.options;
    const final = error instanceof RefusedError && error.fatal;
    const answer =
      onError &&
      (await limited('onError', new Promise<ErrorAnswer>((resolve) => resolve(onError(error, { final }))), this.#ended.signal).catch(
        (mistake) => globalThis.reportError?.(mistake),
      ));
    if (answer === 'stop') return answer;
    if (!answer?.headers) return final ? 'final' : undefined; // in JavaScript it may be anything
    this.#headers = answer.headers;
    return undefined;
  }

  // Another stream takes the place of a healthy one: if that is quick, the connection
  // is not reported as lost.
  #replace(reason: string): void {
    this.#grace ??= setTimeout(() => {
      this.#grace = undefined;
      this.#stream?.open ? this.stores.overdue() : this.#lose(reason);
    }, graceMs);
  }

  #lose(reason: string): void {
    this.#grace = void clearTimeout(this.#grace);
    const { state, since } = this.stores.connection;
    this.stores.disconnect({ state: state === 'connecting' ? state : 'offline', since: state === 'open' ? this.#aliveAt : since, reason });
  }

  // If the problem names a watch, only that one is closed: it does not exist, needs a
  // credential, or has an invalid filter. A problem leaves out an
  // empty name.
  #refused(error: RefusedError): void {
    const { watch = '' } = error.problem ?? {};
    if (!this.stores.get(watch)) return this.close(error);
    this.stores.remove(watch, error);
    this.#immediately = true;
  }

  // There is no room for all positions in the ids of a stream, or for all names in a URL. Each
  // attempt has fewer watches.
  #split(): void {
    this.full = true;
    this.#immediately = true;
    this.options.move(this.stores.split());
  }

  #resubscribe(): void {
    clearTimeout(this.#debounce);
    this.#dueAt = Infinity;
    if (!this.#running) return this.changed();
    if (!this.#stream) return this.#retrySoon();
    if (this.stores.requested) return; // removed and added again
    if (!this.#stream.settled) this.#debounceMs = Math.min(2 * this.#debounceMs, maxDebounceMs);
    this.#immediately = true;
    this.#stream.cut('ended');
  }

  /**
   * An attempt is more likely to succeed now: there is no need to wait longer. The more
   * attempts were made early and failed, the longer it waits at least, so that this can
   * be called at any rate.
   */
  hurry(): void {
    this.options.transport.hurry?.();
    if (!this.#suspended) this.#retrySoon();
  }

  #retrySoon(): void {
    const interval = Math.min(minIntervalMs * 2 ** this.#hurries, maxIntervalMs);
    if (this.#pause.shorten(this.#attemptAt + interval - performance.now())) this.#hurries++;
  }

  #resume(): void {
    this.check(); // timers may be late
    if (this.#suspended) this.#pause.shorten(this.#attemptAt + minIntervalMs - performance.now());
    this.#suspended = '';
    this.hurry();
  }

  #suspend(reason: string): void {
    this.#suspended = reason;
    this.#stream?.cut(reason);
  }
}
