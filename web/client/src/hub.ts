import type { RefusedError } from './errors.js';
import { Followed } from './shared_watch.js';
import type { Port } from './port.js';
import { Tab } from './tab.js';
import { watch, type WatchOptions, type Watches } from './watch.js';

/** The options of the connection. What concerns a tab is said in the tab. */
export type HubOptions = Pick<WatchOptions, 'getToken' | 'headers' | 'credentials' | 'transport'>;

/**
 * Serves the tabs of a browser from one connection: to each it is a gateway that
 * speaks the protocol over a port. It lives in a SharedWorker, or in the tab that
 * leads.
 *
 * A watch is followed for as long as any tab wants it. When no tab wants anything,
 * all rest: the data stays, and goes on by its position when a tab comes back.
 */
export class Hub {
  #tide: Watches<Record<string, string>> | undefined;
  readonly #followed = new Map<string, Followed>();
  readonly #tabs = new Set<Tab>();

  constructor(private readonly url: string | URL, private readonly options: HubOptions = {}) {}

  /** Serves a tab; silent is called when it has not been heard of for minutes. Returns what ends that. */
  serve(port: Port, silent: () => void = () => {}): () => void {
    const tab = new Tab(this, port, silent);
    this.#tabs.add(tab);
    return () => {
      tab.close();
      this.#tabs.delete(tab);
    };
  }

  /** Serves nobody for now, and has no connection. The tabs are not told: another hub will greet them, or this one again. */
  rest(): void {
    for (const tab of this.#tabs) tab.close();
    this.#tabs.clear();
    this.check(); // at once: the tab in which it lives may be about to freeze
  }

  /** @internal */
  follow(name: string): Followed {
    this.#tide ??= watch<Record<string, string>>(this.url, { ...this.options, parse: keepText, hiddenMs: Infinity });
    const followed = this.#followed.get(name) ?? new Followed(this.#tide, name);
    this.#followed.set(name, followed);
    return followed;
  }

  /** @internal It is not for ever: the next tab may come with another cookie. */
  refused(name: string, { status, problem }: RefusedError): void {
    this.#followed.delete(name);
    if (status === 404 && problem?.watch === name) return; // the others are well
    if (status === 414 && [...this.#followed.values()].some(({ closed }) => !closed)) return;
    if ([...this.#followed.values()].every(({ resting }) => resting)) this.#drop();
  }

  /** @internal A tab gave a sign of life: the moment to do what a timer here may be late for. */
  check(): void {
    this.#tide?.check();
  }

  #drop(): void {
    this.#tide?.close();
    this.#tide = undefined;
    this.#followed.clear();
  }
}

// What the hub holds of a resource is the text of its event. It is handed on as it
// is, so that a snapshot is not written out again for each tab, and the digits of a
// large number are still there for a tab that reads them.
function keepText(json: string): unknown {
  const event = JSON.parse(json) as { type: string; value?: unknown };
  // Not the piece itself: it would hold on to the chunk that it was cut from.
  if (event.type === 'upsert') event.value = ` ${json}`.slice(1);
  return event;
}
