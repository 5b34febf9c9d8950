import { authenticated } from './authenticated.js';
import type { RefusedError } from './errors.js';
import { onLogout } from './logout.js';
import type { Port } from './port.js';
import { checkRate } from './rate_control.js';
import { type SharedSpec, SharedWatch } from './shared_watch.js';
import { canonical } from './spec.js';
import { Tab } from './tab.js';
import { type Watches, type WatchOptions, watch } from './watch.js';

// Those that no tab follows any more are remembered up to this number in all: a page may
// come up with ever new filters.
const maxShared = 50;

/** The options of the connection. Those that concern a tab are set in the tab. */
export type HubOptions = Pick<WatchOptions, 'getToken' | 'onError' | 'headers' | 'credentials' | 'transport'> & {
  /** How often changes are sent at most: a rate such as `2/s` or `10/m`. Whenever there are some unless set. */
  readonly maxRate?: string;
};

/**
 * Serves the tabs of a browser from connections that they share: to each tab it is a
 * gateway that speaks the protocol over a port. It lives in a SharedWorker, or in the
 * leader tab.
 *
 * A watch is followed for as long as any tab subscribes to it. When none does, the
 * connection is closed, but the data stays: it is resumed when a tab comes back.
 *
 * Each principal has a hub of its own inside, which refuses streams of any other one. Its data
 * is erased when a session ends, and when a tab of another principal comes while no tab uses it.
 */
export class Hub {
  #tide: Watches<Record<string, string>> | undefined;
  readonly #shared = new Map<string, SharedWatch>(); // by query, without the prefix
  readonly #tabs = new Set<Tab>();
  readonly #principals = new Map<string, Hub>(); // by tag
  #ignoreLogout: (() => void) | undefined;
  readonly #url: string | URL;
  readonly #options: HubOptions;

  constructor(url: string | URL, options: HubOptions = {}) {
    if (options.maxRate !== undefined) checkRate(options.maxRate);
    this.#url = url;
    this.#options = options;
  }

  /** Serves a tab until the returned function is called; onSilent is called when the tab has sent nothing for minutes. */
  serve(port: Port, onSilent: () => void = () => {}): () => void {
    // A tab that is gone must not be kept; one that was frozen comes back.
    const left = () => {
      this.#tabs.delete(tab);
      onSilent();
    };
    const tab = new Tab(this, port, left, (back) => this.#tabs.add(back));
    return () => {
      tab.close();
      this.#tabs.delete(tab);
    };
  }

  /** Serves no tab for now, and closes the connection. The tabs are not told: another hub will greet them, or this one again. */
  rest(): void {
    for (const tab of this.#tabs) tab.close();
    this.#tabs.clear();
    this.check(); // at once: the tab in which it lives may be about to freeze
  }

  /** @internal Returns the hub of a principal; itself where there are no sessions. */
  of(tag: string | undefined): Hub {
    if (tag === undefined) return this;
    for (const [other, hub] of this.#principals) if (other !== tag && hub.#idle) this.#erase(other);
    const hub = this.#principals.get(tag) ?? new Hub(this.#url, asPrincipal(tag, this.#options));
    this.#principals.set(tag, hub);
    this.#ignoreLogout ??= onLogout(this.#url, () => this.#eraseAll());
    return hub;
  }

  get #idle(): boolean {
    return [...this.#shared.values()].every(({ idle }) => idle);
  }

  #eraseAll(): void {
    for (const tag of this.#principals.keys()) this.#erase(tag);
  }

  #erase(tag: string): void {
    const hub = this.#principals.get(tag);
    this.#principals.delete(tag);
    if (hub) hub.#drop();
    if (this.#principals.size > 0) return;
    this.#ignoreLogout?.();
    this.#ignoreLogout = undefined;
  }

  /** @internal */
  follow(spec: SharedSpec): SharedWatch {
    this.#tide ??= watch<Record<string, string>>(this.#url, { ...this.#options, parse: keepText, hiddenMs: Infinity });
    const { query } = canonical(spec);
    const shared = this.#shared.get(query) ?? new SharedWatch(this.#tide, spec);
    this.#shared.delete(query);
    this.#forget();
    this.#shared.set(query, shared); // the newest at the end
    return shared;
  }

  /** @internal */
  moved(shared: SharedWatch, spec: SharedSpec): SharedWatch {
    const { query } = canonical(spec);
    if (!shared.alone || this.#shared.get(query)?.idle === false) return this.follow(spec);
    this.#shared.delete(canonical(shared.spec).query);
    shared.move(spec);
    this.#shared.set(query, shared);
    return shared;
  }

  #forget(): void {
    for (const [query, { idle }] of this.#shared) {
      if (this.#shared.size < maxShared) return;
      if (idle) this.#shared.delete(query);
    }
  }

  /** @internal A refusal is not final: the next tab may come with another cookie. */
  refused({ spec }: SharedWatch, { status, problem }: RefusedError): void {
    this.#shared.delete(canonical(spec).query);
    if (problem?.watch === spec.watch) return; // the others go on
    if (status === 414 && [...this.#shared.values()].some(({ idle, closed }) => !idle && !closed)) return;
    if (this.#idle) this.#drop();
  }

  /** @internal */
  hurry(): void {
    this.#tide?.hurry();
    for (const hub of this.#principals.values()) hub.hurry();
  }

  /** @internal Does what is due, whenever a tab sends something: timers here may be late. */
  check(): void {
    this.#tide?.check();
    for (const hub of this.#principals.values()) hub.check();
  }

  #drop(): void {
    this.#tide?.close();
    this.#tide = undefined;
    this.#shared.clear();
  }
}

/** The options of a connection that shows the data of one principal only. */
function asPrincipal(tag: string, { getToken, transport, ...options }: HubOptions): HubOptions {
  const token = getToken && { getToken: async (hint: { expired: boolean }) => (await getToken(hint)) ?? '' };
  return { ...options, transport: authenticated({ tag, ...token, ...(transport && { transport }) }) };
}

// The hub keeps the text of an upsert as the resource's value, and sends it on as it
// is. A snapshot is not serialised again for each tab, and the digits of large
// numbers are preserved.
function keepText(json: string): unknown {
  const event = JSON.parse(json) as { type: string; value?: unknown };
  // A copy: a substring would keep the whole chunk in memory.
  if (event.type === 'upsert') event.value = ` ${json}`.slice(1);
  return event;
}
