import { Connection, type ConnectionOptions } from './connection.js';
import { Stores } from './stores.js';
import type { Store } from './store.js';
import { fetchTransport, type Transport } from './transport.js';

/** A watch to follow: its name, or its name and a prefix that limits its keys. */
export type WatchSpec<Name extends string = string> = Name | { readonly watch: Name; readonly prefix?: string };

export interface WatchOptions<Name extends string = string> {
  /** The watches to follow at first; more can be added. */
  readonly watches?: ReadonlyArray<WatchSpec<Name>>;
  /** Returns the token to send as `Authorization: Bearer`; called before each connection. expired: the server refused the last one because it had expired. */
  readonly getToken?: ConnectionOptions['getToken'];
  /** Additional headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** As in `fetch`; `include` for cookies to another origin. `same-origin` unless set. */
  readonly credentials?: RequestCredentials;
  /** Reads the streams; `fetch` unless set. */
  readonly transport?: Transport;
  /** Parses the JSON of an event, for instance to keep the digits of large numbers; `JSON.parse` unless set. */
  readonly parse?: (json: string) => unknown;
  /** The time after which a hidden tab closes its stream until it is shown again, in ms; 5 minutes unless set, `Infinity` for never. */
  readonly hiddenMs?: number;
}

/** The watches of one connection to a gateway. Values maps the name of each watch to the type of its values. */
export interface Watches<Values = Record<string, unknown>> {
  /** Returns the store of a followed watch. */
  store<Name extends keyof Values & string>(watch: Name): Store<Values[Name]>;
  /** Follows another watch, from the next request on; what is already known is not sent again. */
  add<Name extends keyof Values & string>(watch: WatchSpec<Name>): Store<Values[Name]>;
  /** Stops following a watch. */
  remove(watch: keyof Values & string): void;
  /** Closes the connection for good. The stores stay readable. */
  close(): void;
  /** @internal Does what is due, in case timers are late, as in a hidden tab. */
  check(): void;
}

/**
 * Follows watches of the gateway at url, in one stream, until it is closed.
 *
 * url is the base URL of the gateway, for instance `/` or `https://gateway.example/live/`.
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
