import { Connection, type ConnectionOptions, type OnError } from './connection.js';
import { checkRate, type RateChooser } from './rate_control.js';
import { type CanonicalSpec, canonical, type WatchSpec } from './spec.js';
import type { OnVerify, Store } from './store.js';
import { fetchTransport, type Transport } from './transport.js';

export interface WatchOptions<Name extends string = string> {
  /** The watches to follow at first; more can be added. */
  readonly watches?: ReadonlyArray<WatchSpec<Name>>;
  /** Returns the token to send as `Authorization: Bearer`; called before each connection. expired: the server has ended the last stream because its token had expired. */
  readonly getToken?: NonNullable<ConnectionOptions['getToken']>;
  /** Called when a connection fails or is refused: may answer with other headers, or `stop`. */
  readonly onError?: OnError;
  /** Called when what a store shows was found to be what the gateway has. */
  readonly onVerify?: OnVerify;
  /** `off`: what stores hold is not verified, and a position that cannot be resumed costs a snapshot. */
  readonly digest?: 'on' | 'off';
  /** How often changes are sent at most, of each resource the newest: a rate such as `2/s` or `10/m`, or `autoRate`. Whenever there are some unless set. */
  readonly maxRate?: string | RateChooser;
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

/**
 * The followed watches of a gateway. Values maps the name of each watch to the type of its values.
 *
 * A watch may be followed more than once at the same time, whole and in parts: each
 * definition has a store of its own, and `store`, `add` and `remove` mean the one with
 * the same definition. A name alone is the whole watch.
 */
export interface Watches<Values = Record<string, unknown>> {
  /** Returns the store of a followed watch. */
  store<Name extends keyof Values & string>(watch: WatchSpec<Name>): Store<Values[Name]>;
  /** Follows another watch, from the next request on; what is already known is not sent again. */
  add<Name extends keyof Values & string>(watch: WatchSpec<Name>): Store<Values[Name]>;
  /** Stops following a watch. */
  remove(watch: WatchSpec<keyof Values & string>): void;
  /** Closes the connection for good. The stores stay readable. */
  close(): void;
  /** Tries again soon, if the connection is lost: for instance, another request of the page has succeeded. May be called at any rate. */
  hurry(): void;
  /** @internal Returns the store that is found by a definition. */
  find(wanted: Pick<CanonicalSpec, 'watch' | 'query'>): Store | undefined;
  /** @internal Returns the connection that follows a store; undefined if none does. */
  connectionOf(store: Store): Connection | undefined;
  /** @internal Does what is due, in case timers are late, as in a hidden tab. */
  check(): void;
}

/**
 * Follows watches of the gateway at url until it is closed: in one stream, and in a further
 * one for each further definition of the same watch, which a stream can carry only once, and
 * for watches for which a stream has no room.
 *
 * url is the base URL of the gateway, for instance `/` or `https://gateway.example/live/`.
 */
export function watch<Values = Record<string, unknown>>(
  url: string | URL,
  { watches = [], transport = fetchTransport, ...rest }: WatchOptions<keyof NoInfer<Values> & string> = {},
): Watches<Values> {
  if (rest.maxRate !== undefined && typeof rest.maxRate !== 'function') checkRate(rest.maxRate);
  if (rest.getToken) transport.checkHeaders?.();
  const options = { ...rest, transport, url: `${String(url).replace(/\/$/, '')}/v1/events`, move };
  let connections: Connection[] = [];
  let closed = false;

  const find: Watches['find'] = ({ watch, query }) =>
    connections.map(({ stores }) => stores.get(watch)).find((store) => store?.query === query && !store.apart);
  const connectionOf: Watches['connectionOf'] = (store) => connections.find(({ stores }) => stores.get(store.watch) === store);

  // A connection that was refused for good is left alone: another one may have another
  // token or cookie.
  function connectionFor({ watch }: Pick<CanonicalSpec, 'watch'>): Connection {
    const free = connections.find(({ stores, full }) => !full && !stores.get(watch) && stores.connection.state !== 'closed');
    if (free) return free;
    const connection = new Connection(options);
    if (closed) connection.close();
    // An empty one would have been free, unless it is closed.
    connections = connections.filter(({ stores }) => stores.size).concat(connection);
    return connection;
  }

  function add(spec: WatchSpec): Store {
    const wanted = canonical(spec);
    if (!find(wanted)) {
      const connection = connectionFor(wanted);
      connection.stores.add(wanted);
      connection.changed();
    }
    const added = store(spec);
    added.added++;
    return added;
  }

  function move(stores: Store[]): void {
    for (const store of stores) {
      const connection = connectionFor(store);
      connection.stores.adopt(store);
      connection.changed();
    }
  }

  function store(spec: WatchSpec): Store {
    const wanted = canonical(spec);
    const store = find(wanted);
    if (!store) throw new Error(`the watch ${wanted.watch} is not followed: add it`);
    return store;
  }

  function remove(spec: WatchSpec): void {
    const store = find(canonical(spec));
    if (store) connectionOf(store)!.remove(store.watch);
  }

  function close(): void {
    closed = true;
    connections.forEach((connection) => connection.close());
  }

  watches.forEach(add);
  const hurry = () => connections.forEach((connection) => connection.hurry());
  return {
    store,
    add,
    remove,
    find,
    connectionOf,
    close,
    hurry,
    check: () => connections.forEach((connection) => connection.check()),
  } as Watches<Values>;
}
