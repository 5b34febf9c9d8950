import { Backoff } from './backoff.js';
import { isFatal, RefusedError, type FatalError } from './errors.js';
import { Page } from './page_lifecycle.js';
import { Pause } from './pause.js';
import { Stream, type End } from './stream.js';
import type { Stores } from './stores.js';
import type { Transport } from './transport.js';

// Watches that are added or removed within so long travel in one request.
const gatherMs = 50;

// A stream that ended in good order is replaced within so long: until then, what is
// shown is as fresh as that of a stream which has been silent. It is one heartbeat.
const graceMs = 15_000;

// However often the network comes back: no two attempts within so long.
const spacingMs = 1_000;

export interface ConnectionOptions {
  /** `…/v1/events` */
  readonly url: string;
  readonly transport: Transport;
  readonly credentials: RequestCredentials;
  readonly headers: Readonly<Record<string, string>>;
  readonly getToken: ((asked: { expired: boolean }) => string | undefined | Promise<string | undefined>) | undefined;
  readonly parse: (json: string) => unknown;
  /** How long a tab may be hidden before it gives up its stream, in ms. */
  readonly hiddenMs: number;
}

/**
 * Keeps one stream open for the stores, for as long as they want any watch: stream
 * after stream, each with the newest id, with pauses between them as long as the
 * server and the back-off say.
 *
 * Everything happens in #run, a single loop; the other methods only wake it up.
 */
export class Connection {
  readonly #backoff = new Backoff();
  readonly #pause = new Pause();
  readonly #page: Page;
  #stream: Stream | undefined;
  #running = false;
  #closed = false;
  #again = false;     // the set of watches changed: no pause before the next stream
  #asleep = false;    // the tab was hidden for long
  #expired = false;   // the server said so of the token
  #attemptAt = 0;
  #aliveAt = 0;       // of the newest stream that was open
  #grace: ReturnType<typeof setTimeout> | undefined;
  #asked = '';        // the watches of the newest request
  #gathering: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly stores: Stores, private readonly options: ConnectionOptions) {
    this.#page = new Page(options.hiddenMs, {
      online: () => this.#hurry(),
      shown: () => this.#shown(),
      hiddenLong: () => this.#sleep(),
    });
  }

  /** The set of watches is another: asks for it. */
  changed(): void {
    if (this.#closed) return;
    if (!this.#running) return void this.#run();
    clearTimeout(this.#gathering);
    this.#gathering = setTimeout(() => this.#renew(), gatherMs);
  }

  /** Does what is due, for where timers are late. */
  check(): void {
    if (this.#gathering) this.#renew();
    this.#stream?.check();
    this.#pause.check();
  }

  close(error?: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#page.close();
    clearTimeout(this.#gathering);
    clearTimeout(this.#grace);
    this.#stream?.cut('closed');
    this.#pause.end();
    this.stores.disconnect({ state: 'closed', since: Date.now(), reason: error?.message ?? '', ...(error && { error }) });
  }

  async #run(): Promise<void> {
    this.#running = true;
    await undefined; // what is added in the same breath goes into the same request
    while (this.#wanted) {
      this.#attemptAt = Date.now();
      const end = await this.#attempt();
      if (end.openedAt !== undefined && !(this.#grace && end.goodbye)) this.#aliveAt = end.aliveAt;
      if (!this.#wanted) break;
      this.#again ? this.#replace('waiting for a new stream') : await this.#recover(end);
      while (this.#asleep && this.#wanted) await this.#pause.begin(Infinity, 'until woken');
    }
    this.#grace = void clearTimeout(this.#grace);
    this.#running = this.#again = false;
    if (!this.#closed) this.stores.disconnect({ state: 'connecting', since: Date.now(), reason: '' });
  }

  get #wanted(): boolean {
    return !this.#closed && !this.stores.empty;
  }

  async #attempt(): Promise<End> {
    const { transport, parse, url, credentials } = this.options;
    const stream = this.#stream = new Stream(this.stores, transport, parse);
    this.#again = false;
    try {
      const headers = await this.#headers();
      this.#asked = String(this.stores.query);
      return await stream.run({ url: `${url}?${this.#asked}`, lastEventId: this.stores.id, headers, credentials });
    } catch (error) { // of getToken
      return { error, goodbye: undefined, retryMs: undefined, aliveAt: Date.now(), openedAt: undefined };
    } finally {
      this.#stream = undefined;
    }
  }

  async #headers(): Promise<Record<string, string>> {
    const { headers, getToken } = this.options;
    const token = await getToken?.({ expired: this.#expired });
    this.#expired = false;
    return { ...headers, ...(token && { Authorization: `Bearer ${token}` }) };
  }

  // After a stream that ended: says so, and waits for as long as it has to.
  async #recover({ error, goodbye, retryMs, openedAt, aliveAt }: End): Promise<void> {
    if (isFatal(error)) return this.#refused(error);
    this.#expired = goodbye?.reason === 'token_expired';
    const reason = goodbye ? `the server said goodbye: ${goodbye.reason}` : error instanceof Error ? error.message : 'the stream ended';
    goodbye && openedAt !== undefined ? this.#replace(reason) : this.#lose(reason);
    this.#backoff.ended(openedAt === undefined ? 0 : aliveAt - openedAt);
    const demanded = goodbye?.retry_ms ?? (error instanceof RefusedError ? error.retryAfterMs : undefined);
    const wait = this.#backoff.next(demanded ?? retryMs ?? 0);
    await this.#pause.begin(wait, demanded === undefined ? 'until woken' : 'to its end');
  }

  // Another stream takes the place of one that was well: if that goes by quickly,
  // there is no trouble to tell.
  #replace(reason: string): void {
    this.#grace ??= setTimeout(() => {
      this.#grace = undefined;
      if (!this.#stream?.open) this.#lose(reason);
    }, graceMs);
  }

  #lose(reason: string): void {
    this.#grace = void clearTimeout(this.#grace);
    const { state, since } = this.stores.link;
    this.stores.disconnect({ state: state === 'connecting' ? state : 'offline', since: state === 'open' ? this.#aliveAt : since, reason });
  }

  // One watch that is not there is no reason to lose the others, nor is one for
  // which the ids of a stream have no room. A problem does not name one without a name.
  #refused(error: FatalError): void {
    const { status, problem: { watch = '' } = {} } = error instanceof RefusedError ? error : {};
    const named = (status === 404 || status === 414) && this.stores.get(watch);
    const refused = named ? [watch] : status === 414 ? this.stores.added : [];
    if (refused.length === 0) return this.close(error);
    for (const watch of refused) this.stores.remove(watch, error);
    this.#again = true;
  }

  #renew(): void {
    this.#gathering = void clearTimeout(this.#gathering);
    if (!this.#running) return this.changed();
    if (!this.#stream) return this.#hurry();
    if (this.#asked === String(this.stores.query)) return; // removed, and added again
    this.#again = true;
    this.#stream.cut('other watches');
  }

  // Something changed for the better: no need to wait out the back-off.
  #hurry(): void {
    this.#pause.shorten(this.#attemptAt + spacingMs - Date.now());
  }

  #shown(): void {
    this.#asleep = false;
    this.check(); // the timers may have slept, too
    this.#hurry();
  }

  #sleep(): void {
    this.#asleep = true;
    this.#stream?.cut('this tab was hidden for too long');
  }
}
