import { Connection, type ConnectionOptions } from './connection.js';
import { Stores } from './stores.js';
import type { Store } from './store.js';
import { fetchTransport, type Transport } from './transport.js';

/** A watch to follow: its name, or its name and the prefix of the keys that matter. */
export type WatchSpec<Name extends string = string> = Name | { readonly watch: Name; readonly prefix?: string };

export interface WatchOptions<Name extends string = string> {
  /** What to follow from the beginning; more can be added. */
  readonly watches?: ReadonlyArray<WatchSpec<Name>>;
  /** Asked before each connection for the token to send as `Authorization: Bearer`. expired: the server refused the last one as too old. */
  readonly getToken?: ConnectionOptions['getToken'];
  /** Further headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** As of `fetch`; `include` for cookies to another origin. `same-origin` unless set. */
  readonly credentials?: RequestCredentials;
  /** How streams are read; with `fetch` unless set. */
  readonly transport?: Transport;
  /** Reads the JSON of an event. One that keeps the digits of large numbers goes here; `JSON.parse` unless set. */
  readonly parse?: (json: string) => unknown;
  /** After how long in a hidden tab the stream is given up, until the tab is shown again, in ms; 5 minutes unless set, `Infinity` for never. */
  readonly hiddenMs?: number;
}

/** The watches of one connection to a gateway. Values says which type the values of each watch have. */
export interface Watches<Values = Record<string, unknown>> {
  /** The store of a watch that is followed. */
  store<Name extends keyof Values & string>(watch: Name): Store<Values[Name]>;
  /** Follows a watch as well, from the next request on; what is known already does not travel again. */
  add<Name extends keyof Values & string>(watch: WatchSpec<Name>): Store<Values[Name]>;
  /** Follows a watch no longer. */
  remove(watch: keyof Values & string): void;
  /** Ends the connection for good. What the stores hold stays readable. */
  close(): void;
  /** @internal Does what is due, for a hub in a hidden tab, whose timers are late. */
  check(): void;
}

/**
 * Follows watches of the gateway at url, in one stream, until it is closed.
 *
 * url is where the gateway is served, for instance `/` or `https://gateway.example/live/`.
 */
export function watch<Values = Record<string, unknown>>(
  url: string | URL,
  { watches = [], getToken, headers = {}, credentials = 'same-origin', transport = fetchTransport, parse = JSON.parse, hiddenMs = 300_000 }:
  WatchOptions<keyof NoInfer<Values> & string> = {},
): Watches<Values> {
  if (getToken && !transport.hearsHeartbeat) throw new Error('an EventSource cannot send a token: leave out getToken, or transport');
  const stores = new Stores();
  const events = `${String(url).replace(/\/$/, '')}/v1/events`;
  const connection = new Connection(stores, { url: events, transport, credentials, headers, getToken, parse: (json) => parse(json), hiddenMs });

  function add(spec: WatchSpec): Store {
    const { watch, prefix } = typeof spec === 'string' ? { watch: spec, prefix: '' } : spec;
    const known = stores.get(watch);
    const store = stores.add(watch, prefix);
    if (!known) connection.changed();
    return store;
  }

  function store(watch: string): Store {
    const store = stores.get(watch);
    if (!store) throw new Error(`the watch ${watch} is not followed: add it`);
    return store;
  }

  function remove(watch: string): void {
    if (!stores.get(watch)) return;
    stores.remove(watch);
    connection.changed();
  }

  for (const spec of watches) add(spec);
  return { store, add, remove, close: () => connection.close(), check: () => connection.check() } as Watches<Values>;
}
