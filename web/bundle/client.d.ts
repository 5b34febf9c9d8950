/*! @watchtide/client, Apache-2.0 */
/**
 * Called when a connection fails or is refused, before the next attempt. final: the
 * refusal is the gateway's own, and would be repeated. May answer with other headers for
 * the next attempts, even after a final refusal, or with `stop`, which closes the stores.
 */
type OnError = (error: Error, hint: {
    readonly final: boolean;
}) => ErrorAnswer | Promise<ErrorAnswer>;

type ErrorAnswer = void | 'stop' | {
    readonly headers: Readonly<Record<string, string>>;
};

/** The response was 200, but not an event stream: there is no gateway at this URL, or a proxy answers in its place. */
declare class NotAStreamError extends Error {
    readonly contentType: string;
    readonly name = "NotAStreamError";
    constructor(url: string, contentType: string);
}

/**
 * The server refused the stream, with a status other than 200. A refusal is `fatal`
 * if the gateway itself says why, and another attempt would get the same answer: 401,
 * 403, 404 or 406 for example, but not 429 or 503, nor the page of a proxy.
 */
declare class RefusedError extends Error {
    readonly status: number;
    /** The gateway's explanation (RFC 9457); undefined if the answer is not the gateway's. */
    readonly problem: Problem | undefined;
    /** From `Retry-After`: the earliest moment for another attempt, in ms from now. */
    readonly retryAfterMs: number | undefined;
    readonly fatal: boolean;
    readonly name = "RefusedError";
    constructor(status: number, 
    /** The gateway's explanation (RFC 9457); undefined if the answer is not the gateway's. */
    problem: Problem | undefined, 
    /** From `Retry-After`: the earliest moment for another attempt, in ms from now. */
    retryAfterMs: number | undefined, message?: string, fatal?: boolean);
}

/** RFC 9457. */
interface Problem {
    /** In code points. */
    column?: number;
    /** What was wrong, where, and what would be right. */
    detail: string;
    key?: string;
    key_encoding?: Encoding;
    line?: number;
    /** Where in the parameter the mistake begins, in bytes; with `line` and `column`. */
    offset?: number;
    /** Name of the parameter or header. */
    parameter?: string;
    status: number;
    title: string;
    type: string;
    watch?: string;
}

type Encoding = "base64";

/**
 * Reads streams with the browser's own `EventSource`, for pages that must not use
 * `fetch`. It cannot send headers, so `getToken` cannot be used; it hides the
 * heartbeat, so a connection that died silently is not noticed; and it hides the
 * reason of a refusal, so a refusal looks like a lost connection.
 *
 * The client still reconnects by itself: an `EventSource` has no back-off, and gives
 * up at the first refusal.
 */
declare const eventSourceTransport: Transport;

/** A way to read a stream. */
interface Transport {
    /** Whether it notices the server's heartbeat, so that silence means a dead connection. */
    readonly hearsHeartbeat: boolean;
    /** Tells whoever holds the connection, if that is not the transport's user, that an attempt is more likely to succeed now. */
    hurry?(): void;
    /** Reads one stream: resolves at its end, rejects if it is refused or lost. */
    read(request: StreamRequest, receiver: Receiver): Promise<void>;
}

/** One request for a stream. */
interface StreamRequest {
    readonly url: string;
    /** The position to resume from; empty for none. */
    readonly lastEventId: string;
    /** Further headers, `Authorization` among them. */
    readonly headers: Readonly<Record<string, string>>;
    readonly credentials: RequestCredentials;
    /** Ends the stream; the transport then no longer calls the receiver. */
    readonly signal: AbortSignal;
}

/** Called by a transport, in the order of the stream. */
interface Receiver extends SSEHandler {
    /** Something arrived, even if only a comment. */
    alive(): void;
    /** Everything that arrived together has been passed on. */
    flush(): void;
}

/** Called by a parser, in the order of the text. */
interface SSEHandler {
    event(data: string): void;
    /** The `id` of the preceding event. */
    id(id: string): void;
    retry(ms: number): void;
}

/** One event. Clients ignore types that they do not know. */
type Event = HelloEvent | ResetEvent | UpsertEvent | DeleteEvent | EndOfSnapshotEvent | BookmarkEvent | StatusEvent | GoodbyeEvent;

/** The first event of every response. */
interface HelloEvent {
    /** The longest silence. */
    heartbeat_ms: number;
    instance?: Instance;
    stream?: StreamID;
    type: "hello";
    watches: Array<{
        mode: "snapshot" | "resume";
        watch: WatchName;
    }>;
}

/** Names the process that answers. Counters of two instances have nothing to do with each other. */
type Instance = string;

/** Names a stream, so that it can be renewed, if the gateway asks who its clients are. */
type StreamID = string;

type WatchName = string;

/** Forget everything known of this watch; a full snapshot follows. */
interface ResetEvent {
    reason: "initial" | "expired" | "ahead" | "epoch_changed" | "invalid_position";
    type: "reset";
    watch: WatchName;
}

/** A resource in the snapshot, or created or changed. Carries the full value. */
interface UpsertEvent {
    encoding?: Encoding;
    key: string;
    key_encoding?: Encoding;
    revision: Revision;
    type: "upsert";
    value: Value;
    watch: WatchName;
}

/** Unsigned 64-bit number, the place in the upstream's own order. */
type Revision = string;

/** Any JSON, digits and key order as the upstream has them. */
type Value = unknown;

/** A resource is gone, or left the view. */
interface DeleteEvent {
    key: string;
    key_encoding?: Encoding;
    revision: Revision;
    type: "delete";
    watch: WatchName;
}

/** The client now holds exactly the state at `revision`. After a resume, "caught up". */
interface EndOfSnapshotEvent {
    /** Number of resources. */
    count: number;
    /** After a resume. */
    resumed?: true;
    revision: Revision;
    type: "end_of_snapshot";
    watch: WatchName;
}

/** Progress without data; also ends a catch-up. */
interface BookmarkEvent {
    /** Before changes up to this revision that may lack values: the upstream of the gateway sent the newest value of a resource and not those in between. For whoever serves the watch to others; other clients ignore it. */
    conflated?: Revision;
    /** After an outage: what was created and deleted before this revision may be unknown here, so that no position of this watch below it is resumed. Whoever serves the watch to others must not resume such positions either; other clients ignore it. */
    horizon?: Revision;
    revision: Revision;
    /** After a catch-up: changes that this subscriber did not see one by one. */
    skipped?: number;
    type: "bookmark";
    watch: WatchName;
}

/** The freshness of the watch, or of this subscriber (`catching_up`), changed. */
interface StatusEvent {
    reason?: string;
    since?: string;
    state: "priming" | "in_sync" | "resyncing" | "stale" | "catching_up";
    type: "status";
    watch: WatchName;
}

/** The last event before the server ends the stream on purpose. */
interface GoodbyeEvent {
    reason: "draining" | "max_age" | "overloaded" | "token_expired" | "revoked" | "watch_removed" | "watch_replaced" | "complete";
    /** When to come back. */
    retry_ms: number;
    type: "goodbye";
}

/** What changed from one consistent state to the next. */
interface Changes {
    /** A new snapshot replaced everything: any key may have changed. */
    readonly replaced: boolean;
    /** The keys that were set or deleted; empty if everything was replaced. */
    readonly keys: ReadonlySet<string>;
}

/**
 * Returns the key of a resource in a map. It is the key itself, except for keys that
 * are not UTF-8: their base64 gets a lone surrogate as a prefix, which no UTF-8 key
 * can contain, so that the two never collide.
 */
declare function mapKey({ key, key_encoding }: Pick<UpsertEvent | DeleteEvent, 'key' | 'key_encoding'>): string;

/** One member of a watch, as of its last change. */
interface Resource<V = unknown> {
    /** Unique in the watch. In base64 if `key_encoding` says so. */
    readonly key: string;
    readonly key_encoding?: 'base64';
    /** The place of its last change in the upstream's order, as text: it may be too large for a number. */
    readonly revision: string;
    readonly value: V;
    /** `value` is a string that holds bytes in base64. */
    readonly encoding?: 'base64';
}

/** What of a watch is followed; everything unless set. */
interface Definition {
    /** Only keys that begin with it. */
    readonly prefix?: string;
    /** Only resources whose labels match a selector in the syntax of Kubernetes: `app=web,!legacy`. */
    readonly labels?: string;
    /** Only resources for which an expression in CEL is true: `value.state != "passing"`. */
    readonly filter?: string;
    /** Only these paths of the values: names with dots between them. */
    readonly fields?: string | readonly string[];
}

/** A watch to follow: its name, or its name and what of it. */
type WatchSpec<Name extends string = string> = Name | ({
    readonly watch: Name;
} & Definition);

/** Called with the current view, and with what changed since the last call. */
type Listener<V> = (view: View<V>, changes: Changes) => void;

/** A watch at one moment: a new object whenever anything in it changes. */
interface View<V = unknown> extends Freshness {
    /**
     * The last consistent state: another object for each, which is not a copy. An old one may
     * show newer resources; `new Map(resources)` stands still.
     */
    readonly resources: ReadonlyMap<string, Resource<V>>;
    /** The revision of `resources`; empty before the first snapshot. */
    readonly revision: string;
}

interface Freshness {
    readonly state: State;
    /** When the state began, in ms as of `Date.now`. For `stale` and `offline`: when it was last in sync. */
    readonly since: number;
    /** A human-readable sentence, or empty. */
    readonly reason: string;
    /** The reason why it is closed, unless that was asked for. */
    readonly error?: Error;
}

/**
 * The freshness of the displayed data.
 *
 * - `connecting`: the first connection is not open yet; nothing to show
 * - `priming`: connected, and the first snapshot is not complete; nothing to show
 * - `in_sync`: the data is that of the upstream
 * - `stale`: connected, but the data may be out of date
 * - `offline`: the connection is lost; the data may be out of date
 * - `closed`: for good, by `close`, `remove`, or a refusal, which sets `error`
 */
type State = 'connecting' | 'priming' | 'in_sync' | 'stale' | 'offline' | 'closed';

/**
 * One watch, or a part of it: its resources, their freshness, and the listeners.
 *
 * `subscribe` follows the contract of Svelte's stores: the listener is called at
 * once, and again after each change. A change is a consistent state of the resources,
 * or another freshness; changes that arrive together are one.
 */
declare class Store<V = unknown> {
    #private;
    readonly watch: string;
    /** The current view: the same object until something in it changes. */
    get view(): View<V>;
    get resources(): View<V>['resources'];
    get state(): View<V>['state'];
    /**
     * The position of what is shown, from which a stream can resume; empty before the
     * first snapshot. Opaque. It may name other watches of the connection as well, which
     * a server ignores if they are not requested.
     */
    get position(): string;
    /**
     * Calls run at once, with all keys as changed, and after each change, until the returned
     * function is called. If the first call throws, so does subscribe, and there is no other.
     */
    subscribe(run: Listener<V>): () => void;
}

/**
 * The followed watches of a gateway. Values maps the name of each watch to the type of its values.
 *
 * A watch may be followed more than once at the same time, whole and in parts: each
 * definition has a store of its own, and `store`, `add` and `remove` mean the one with
 * the same definition. A name alone is the whole watch.
 */
interface Watches<Values = Record<string, unknown>> {
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
}

/**
 * Follows watches of the gateway at url until it is closed: in one stream, and in a further
 * one for each further definition of the same watch, which a stream can carry only once, and
 * for watches for which a stream has no room.
 *
 * url is the base URL of the gateway, for instance `/` or `https://gateway.example/live/`.
 */
declare function watch<Values = Record<string, unknown>>(url: string | URL, { watches, getToken, onError, headers, credentials, transport, parse, hiddenMs, }?: WatchOptions<keyof NoInfer<Values> & string>): Watches<Values>;

interface WatchOptions<Name extends string = string> {
    /** The watches to follow at first; more can be added. */
    readonly watches?: ReadonlyArray<WatchSpec<Name>>;
    /** Returns the token to send as `Authorization: Bearer`; called before each connection. expired: the server has ended the last stream because its token had expired. */
    readonly getToken?: ConnectionOptions['getToken'];
    /** Called when a connection fails or is refused: may answer with other headers, or `stop`. */
    readonly onError?: ConnectionOptions['onError'];
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

interface ConnectionOptions {
    /** `…/v1/events` */
    readonly url: string;
    readonly transport: Transport;
    readonly credentials: RequestCredentials;
    readonly headers: Readonly<Record<string, string>>;
    readonly getToken: ((asked: {
        expired: boolean;
    }) => string | undefined | Promise<string | undefined>) | undefined;
    readonly onError: OnError | undefined;
    /** Moves stores, for which a stream has no room, to other connections. */
    readonly move: (stores: Store[]) => void;
    readonly parse: (json: string) => unknown;
    /** The time after which a hidden tab closes its stream, in ms. */
    readonly hiddenMs: number;
}

interface AuthenticatedOptions {
    /**
     * Returns a token. expired: the last one has expired, or is about to, so another one is
     * needed. Without getToken, the cookie of a session identifies the user.
     */
    readonly getToken?: (hint: {
        expired: boolean;
    }) => string | Promise<string>;
    /**
     * Reads the streams; `fetch` unless set. For one that sends no headers, such as
     * `eventSourceTransport`, the token is exchanged for a session.
     */
    readonly transport?: Transport;
    /** Sends a ticket in the URL instead of using a session: for pages that get no cookies of the gateway. Needs getToken. */
    readonly tickets?: boolean;
    /** The tag of the session whose data is shown; that of the first connection unless set. */
    readonly tag?: string;
}

/**
 * Reads streams as one user, and never passes on an event of another user's stream: if
 * another user is signed in by now, the stream is refused. A stream is renewed before its
 * token expires, if there is another token.
 */
declare function authenticated({ transport, getToken, tickets, tag }?: AuthenticatedOptions): Transport;

/** Exchanges a token for the cookie of a session, which the page itself cannot read. */
declare function beginSession(url: string | URL, token: string, { headers, ...request }?: SessionRequest): Promise<void>;

/** Options for requests about sessions. */
interface SessionRequest {
    readonly headers?: Readonly<Record<string, string>>;
    /** As in `fetch`; `include` for the cookie of another origin. `same-origin` unless set. */
    readonly credentials?: RequestCredentials;
    readonly signal?: AbortSignal;
}

/** Ends the session, and all streams that it has opened, in other tabs too. What tabs share of its data is erased. */
declare function endSession(url: string | URL, request?: SessionRequest): Promise<void>;

/** Asks the gateway at url which user it sees. A gateway without sessions sees nobody; an answer that is not a gateway's is an error. */
declare function getSession(url: string | URL, request?: SessionRequest): Promise<Session>;

/** The user that the gateway sees. */
interface Session {
    /** Empty without a credential. */
    readonly name: string;
    readonly issuer: string;
    /** `anonymous` without a credential. */
    readonly mechanism: string;
    /** Identifies the user without revealing anything: it is the same for all credentials of a user. Empty without one. */
    readonly tag: string;
    /** When the credential expires, as in RFC 3339; missing if it does not. */
    readonly expires?: string;
}

interface DeliveryOptions {
    /** The mean time between two reports, in ms; a minute unless set, and a second at least. */
    readonly everyMs?: number;
    /** Additional headers of each report, for instance `Authorization`. */
    readonly headers?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
    /** As in `fetch`; `same-origin` unless set. */
    readonly credentials?: RequestCredentials;
}

/**
 * Reports to the gateway at url how long changes of some stores take until they are
 * painted, for its metrics: from time to time, the next change of each. The gateway must
 * have `http.delivery_reports`. Returns a function that ends the reports.
 *
 * Only durations are sent, so the clock of this device does not matter. A report that
 * fails is not repeated.
 */
declare function reportDelivery(url: string | URL, stores: readonly Store[], { everyMs, headers, credentials }?: DeliveryOptions): () => void;

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
declare class Hub {
    #private;
    constructor(url: string | URL, options?: HubOptions);
    /** Serves a tab until the returned function is called; onSilent is called when the tab has sent nothing for minutes. */
    serve(port: Port, onSilent?: () => void): () => void;
    /** Serves no tab for now, and closes the connection. The tabs are not told: another hub will greet them, or this one again. */
    rest(): void;
}

/** The options of the connection. Those that concern a tab are set in the tab. */
type HubOptions = Pick<WatchOptions, 'getToken' | 'onError' | 'headers' | 'credentials' | 'transport'>;

/** Carries messages between tabs and a hub: a MessagePort, or a BroadcastChannel of the two. */
interface Port {
    postMessage(message: unknown): void;
    /** `close`: the other end is gone. Not every browser reports that, and a BroadcastChannel never does. */
    addEventListener(type: 'message' | 'close', listener: (event: MessageEvent) => void): void;
    removeEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
    /** For ports that hold messages back until it is called. */
    start?(): void;
}

/**
 * Reads streams from a hub: `watch(url, { transport: sharedTransport(worker.port) })`.
 * onUnresponsive is called when the hub does not answer, long before the stream is
 * given up, or when it is of another version. tag is that of the principal whose data is read. onHub is called
 * when a hub of this version answers.
 */
declare function sharedTransport(port: Port, onUnresponsive?: () => void, tag?: string, onHub?: () => void): Transport;

interface SharedOptions<Name extends string = string> extends WatchOptions<Name> {
    /**
     * Creates the SharedWorker in which `serveTabs` runs. The page creates it because
     * with Trusted Types the URL of a script must come from a policy of the page.
     */
    readonly worker?: () => SharedWorker;
    /** Without a SharedWorker, tabs with the same name and the same principal share a connection; the URL unless set. */
    readonly name?: string;
    /** The tag of the principal whose data is shown, from `getSession`, or null for a gateway without sessions; the gateway is asked for it before each stream unless set. */
    readonly tag?: string | null;
}

/** In a SharedWorker: serves the tabs that connect, over one connection to the gateway at url. */
declare function serveTabs(url: string | URL, options?: HubOptions): void;

/**
 * Follows watches as `watch` does, over one connection for all tabs of the browser in
 * which the same principal is signed in.
 * The worker holds it; if there is none, or it does not answer, one of the tabs does;
 * and without Web Locks, each tab has its own.
 *
 * getToken, headers, credentials and transport apply to a connection of this tab: those of the
 * worker are passed to `serveTabs`.
 */
declare function watchShared<Values = Record<string, unknown>>(url: string | URL, options?: SharedOptions<keyof NoInfer<Values> & string>): Watches<Values>;

export { AuthenticatedOptions, BookmarkEvent, Changes, Definition, DeleteEvent, DeliveryOptions, Encoding, EndOfSnapshotEvent, Event, GoodbyeEvent, HelloEvent, Hub, HubOptions, Instance, Listener, NotAStreamError, OnError, Port, Problem, Receiver, RefusedError, ResetEvent, Resource, Revision, Session, SessionRequest, SharedOptions, State, StatusEvent, Store, StreamID, StreamRequest, Transport, UpsertEvent, Value, View, WatchName, WatchOptions, WatchSpec, Watches, authenticated, beginSession, endSession, eventSourceTransport, getSession, mapKey, reportDelivery, serveTabs, sharedTransport, watch, watchShared };
