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
    readonly name: string;
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
    /** Called with the time until the next stream, in ms, when one was lost. */
    waits?(ms: number): void;
    /** Throws if it cannot send headers, such as that of a token. */
    checkHeaders?(): void;
    /** Tells whoever holds the connection, if that is not the transport's user, that an attempt is more likely to succeed now. */
    hurry?(): void;
    /** Makes a request for one answer, as the user whose streams it reads. Without it, its streams have no digests. */
    ask?(request: AnswerRequest): Promise<Response>;
    /** Makes a request with POST, as the user whose streams it reads. Without it, a window that moves takes another stream. */
    post?(request: AnswerRequest): Promise<Response>;
    /** Reads one stream: resolves at its end, rejects if it is refused or lost. */
    read(request: StreamRequest, receiver: Receiver): Promise<void>;
}

/** A request for one answer, with the headers and the credentials of a stream. */
type AnswerRequest = Pick<StreamRequest, 'url' | 'headers' | 'credentials' | 'signal'>;

/** One request for a stream. */
interface StreamRequest {
    readonly url: string;
    /** The position to resume from; empty for none. */
    readonly lastEventId: string;
    /** Further headers, `Authorization` among them. */
    readonly headers: Readonly<Record<string, string>>;
    readonly credentials: RequestCredentials;
    /** Ends the stream; the transport then no longer calls the receiver. The reason may be `replaced`: another one follows at once. */
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
    /** bytes: where those of data, one for each character, begin at a place; if they are at hand. */
    event(data: string, bytes?: Uint8Array, at?: number): void;
    /** The `id` of the preceding event. */
    id(id: string): void;
    retry(ms: number): void;
}

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
    /** When `resources` were last found to be what the gateway has, by its digest, in ms as of `Date.now`; missing before. */
    readonly verifiedAt?: number;
    /** Before the first snapshot: the resources with the keys that were to come first, when they have come. */
    readonly first?: ReadonlyMap<string, Resource<V>>;
    /** Of a window, as it was last said. */
    readonly place?: Place;
    /** How often changes are sent at most, such as `2/s`; missing without such a bound, and without a connection. */
    readonly maxRate?: string;
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
 * - `stale`: connected, or about to be for the first time, but the data may be out of date
 * - `offline`: the connection is lost; the data may be out of date
 * - `closed`: for good, by `close`, `remove`, or a refusal, which sets `error`
 */
type State = 'connecting' | 'priming' | 'in_sync' | 'stale' | 'offline' | 'closed';

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

/** Where a window is among the resources of its watch, in its order. */
interface Place {
    /** The number of resources that it is a window of. */
    readonly total: number;
    /** How many of them come before the window. */
    readonly before: number;
    /** The `after` of what comes after the window; empty: nothing does. */
    readonly next: string;
}

/** What changed from one consistent state to the next. */
interface Changes {
    /** A new snapshot replaced everything: any key may have changed. */
    readonly replaced: boolean;
    /** The keys that were set or deleted; empty if everything was replaced. */
    readonly keys: ReadonlySet<string>;
}

/** What can be followed like a store: stores themselves, and what is made from one. */
interface Readable<V = unknown> {
    /** The current view: the same object until something in it changes. */
    readonly view: View<V>;
    /** Calls run at once, and after each change, until the returned function is called. */
    subscribe(run: Listener<V>): () => void;
}

/** Progress without data; also ends a catch-up. */
interface BookmarkEvent {
    /** With `order`: how many of them come before the window. */
    before?: number;
    /** Before changes up to this revision that may lack values: the upstream of the gateway sent the newest value of a resource and not those in between. For whoever serves the watch to others; other clients ignore it. */
    conflated?: Revision;
    digest?: Digest;
    /** After an outage: what was created and deleted before this revision may be unknown here, so that no position of this watch below it is resumed. Whoever serves the watch to others must not resume such positions either; other clients ignore it. */
    horizon?: Revision;
    /** After a move of the window: the number of the newest move that this includes. */
    move?: number;
    /** With `order`: the `after` of what comes next. Absent: nothing does. */
    next?: string;
    revision: Revision;
    /** After a catch-up: changes that this subscriber did not see one by one. */
    skipped?: number;
    /** With `order`: the number of resources that it is a window of. */
    total?: number;
    type: "bookmark";
    watch: WatchName;
}

/** Unsigned 64-bit number, the place in the upstream's own order. */
type Revision = string;

/** The digest of a state: the number of its resources and the sum of their hashes. `docs/protocol.md` has the function. */
type Digest = string;

type WatchName = string;

/** A resource is gone, or left the view. */
interface DeleteEvent {
    key: string;
    key_encoding?: Encoding;
    /** With `order`: it is still there after that change, but not in the window any more. Not said where a stream resumes, catches up or has a `max_rate`. */
    left?: true;
    revision: Revision;
    type: "delete";
    watch: WatchName;
}

/** The client now holds exactly the state at `revision`. After a resume, "caught up". */
interface EndOfSnapshotEvent {
    /** With `order`: how many of them come before the window. */
    before?: number;
    /** Number of resources. */
    count: number;
    digest?: Digest;
    /** With `deletes=1`: what was deleted after this revision, and is not in the snapshot, is among its deletes. */
    horizon?: Revision;
    /** After a move of the window: the number of the newest move that this includes. */
    move?: number;
    /** With `order`: the `after` of what comes next. Absent: nothing does. */
    next?: string;
    /** After a resume. */
    resumed?: true;
    revision: Revision;
    /** With `order`: the number of resources that it is a window of. */
    total?: number;
    type: "end_of_snapshot";
    /** With `resume=digest`: what was sent may not be all that differs. */
    verify?: true;
    watch: WatchName;
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

/** Names a stream, so that its windows can be moved, and that it can be renewed if the gateway asks who its clients are. */
type StreamID = string;

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

/** Any JSON, digits and key order as the upstream has them. */
type Value = unknown;

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

/** Begins to choose the rate of a connection. chosen is to be called when the rate is another one. */
type RateChooser = (chosen: () => void) => RateControl;

/** Chooses the rate of a connection. */
interface RateControl {
    /** How often changes are to be sent at most, such as `2/s` or `10/m`; undefined: whenever there are some. */
    readonly rate: string | undefined;
    /** Called when changes have arrived on a stream that is up to date. */
    changed?(): void;
    /** Called when the connection is closed. */
    close?(): void;
}

/**
 * Returns the key of a resource in a map. It is the key itself, except for keys that
 * are not UTF-8: their base64 gets a lone surrogate as a prefix, which no UTF-8 key
 * can contain, so that the two never collide.
 */
declare function mapKey({ key, key_encoding }: Pick<UpsertEvent | DeleteEvent, 'key' | 'key_encoding'>): string;

/** A resource with the hash of what the gateway has sent, as 16 hexadecimal digits. Without it, a store that begins with the resource cannot be verified. */
type HashedResource<V = unknown> = Resource<V> & {
    readonly hash?: string;
};

/**
 * A watch, or a part of it, at one moment, as plain data: its resources, and the position
 * from which a stream goes on after exactly these. Stored or sent, and passed as `initial`,
 * it spares a page the snapshot.
 */
interface Snapshot<V = unknown> {
    readonly resources: ReadonlyArray<HashedResource<V>>;
    readonly revision: string;
    /** Opaque; of this watch alone. */
    readonly position: string;
    /** When it was in sync, in ms as of `Date.now`. */
    readonly since: number;
}

/** What of a watch is followed; everything unless set. */
interface Definition {
    /** Only keys that begin with it. */
    readonly prefix?: string;
    /** Exactly these keys, 1,000 at most. In a text there are commas between them, and a key with a comma is in double quotes. */
    readonly keys?: string | readonly string[];
    /** Only resources whose labels match a selector in the syntax of Kubernetes: `app=web,!legacy`. */
    readonly labels?: string;
    /** Only resources for which an expression in CEL is true: `value.state != "passing"`. */
    readonly filter?: string;
    /** Only these paths of the values: names with dots between them. */
    readonly fields?: string | readonly string[];
    /** Only a window of the resources in this order: paths with commas between them, a minus before those that descend, such as `-cpu_percent,name`. With it, `limit` is required. */
    readonly order?: string | readonly string[];
    /** How many resources the window has at most, 1 to 1,000. */
    readonly limit?: number;
    /** How many resources come before the window; 0 unless set. */
    readonly offset?: number;
    /** In place of `offset`, the `next` of a window with the same order: the window begins after it. */
    readonly after?: string;
    /** In place of the resources, how many have the same values of these fields, one to four paths: see `watchCounts`. */
    readonly by?: string | readonly string[];
    /** With `by`, a path: each group also has the sum, the least and the greatest of its numbers. */
    readonly sum?: string;
}

/** A watch to follow: its name, or its name, what of it, and what to begin with. */
type WatchSpec<Name extends string = string> = Name | ({
    readonly watch: Name;
    readonly initial?: Snapshot | undefined;
    readonly first?: First | undefined;
} & Definition);

/** The keys of the resources that come before all others, 1,000 at most, as in `keys`: `first` of a view has them until the first snapshot is complete. */
type First = string | readonly string[];

/** Called when what a store shows was found to be what the gateway has, by its digest. repaired: how many resources differed before. */
type OnVerify = (store: Store, found: {
    readonly repaired: number;
}) => void;

/**
 * One watch, or a part of it: its resources, their freshness, and the listeners.
 *
 * `subscribe` follows the contract of Svelte's stores: the listener is called at
 * once, and again after each change. A change is a consistent state of the resources,
 * or another freshness; changes that arrive together are one.
 */
declare class Store<V = unknown> implements Readable<V> {
    #private;
    readonly watch: string;
    private readonly keysFirst;
    private readonly onVerify?;
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

/** Returns a snapshot of a store; undefined before the first snapshot. It takes time in proportion to the resources. */
declare function snapshot<V>(store: Store<V>): Snapshot<V> | undefined;

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
declare function watch<Values = Record<string, unknown>>(url: string | URL, { watches, transport, ...rest }?: WatchOptions<keyof NoInfer<Values> & string>): Watches<Values>;

interface WatchOptions<Name extends string = string> {
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

interface ConnectionOptions {
    /** `…/v1/events` */
    readonly url: string;
    readonly transport: Transport;
    readonly credentials?: RequestCredentials;
    readonly headers?: Readonly<Record<string, string>>;
    readonly getToken?: (asked: {
        expired: boolean;
    }) => string | undefined | Promise<string | undefined>;
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

/** Calls run when `endSession` ends a session at this gateway, in this tab or in another one, until the returned function is called. */
declare function onLogout(url: string | URL, run: () => void): () => void;

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

/** What is counted, and by which fields; without `by`, the watch is a count that the configuration of the gateway declares. */
type CountOptions<Name extends string = string> = {
    readonly watch: Name;
} & ((Pick<Definition, 'prefix' | 'keys' | 'labels' | 'filter' | 'sum'> & Required<Pick<Definition, 'by'>>) | {
    readonly by?: never;
});

/** The resources with the same values of the fields of `by`. The same object until something in it changes. */
interface CountedGroup {
    /** Of one field the value: a text as it is, and anything else as JSON. Of several fields a JSON array of the values. */
    readonly key: string;
    /** The values of the fields, in the order of `by`. An absent field is null, each object is `{}`, and each array `[]`. */
    readonly values: readonly unknown[];
    readonly count: number;
    /** Of the numbers of `sum`, as are the least and the greatest; missing where there are none. */
    readonly sum?: number;
    readonly min?: number;
    readonly max?: number;
}

/** Counts at one moment: a new object whenever anything in it changes. */
interface CountsView extends DerivedView {
    /** By key, in the order of their values; another map whenever one of them has changed. */
    readonly groups: ReadonlyMap<string, CountedGroup>;
    /** The number of resources in all groups. */
    readonly total: number;
}

/** The state of what is made from a store: as fresh as that is. */
interface DerivedView extends Freshness {
    /** The revision of the store. */
    readonly revision: string;
}

/** How many resources of a watch have the same values of some fields, for as long as it is followed. */
interface LiveCounts {
    readonly view: CountsView;
    /** Calls run at once, and after each change, until the returned function is called. The keys are those of groups. */
    subscribe(run: (view: CountsView, changes: Changes) => void): () => void;
    /** Ends it: its view is `closed`, and subscribe throws. */
    close(): void;
}

/**
 * Counts the resources of a watch by the values of some fields, and adds those of another one. The gateway counts, and sends
 * only the groups that a change has changed. Parts of a page that count the same share what is sent. A `by` that is given and
 * empty throws a TypeError.
 */
declare const watchCounts: <Values, Name extends keyof Values & string>(watches: Watches<Values>, options: CountOptions<Name>) => LiveCounts;

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
 * Parses JSON like `JSON.parse`, except that an integer beyond 2⁵³ becomes a bigint, with all its digits. Numbers
 * with a fraction or an exponent stay numbers. Throws a SyntaxError for what is not JSON.
 */
declare function parse(json: string): unknown;

/** Writes a value as JSON like `JSON.stringify`, except that a bigint becomes an integer. */
declare function stringify(value: unknown): string;

interface HttpOptions extends RequesterOptions {
    /** Parses the JSON of an answer; `JSON.parse` unless set. */
    readonly parse?: (json: string) => unknown;
    /** Writes a value as JSON; `JSON.stringify` unless set. */
    readonly stringify?: (value: unknown) => string;
}

interface RequesterOptions {
    /** Returns the token to send as `Authorization: Bearer`. After a 401 it is asked once more, with `expired`. */
    readonly getToken?: (asked: {
        expired: boolean;
    }) => string | undefined | Promise<string | undefined>;
    /** Additional headers of each request. */
    readonly headers?: Readonly<Record<string, string>>;
    /** As in `fetch`; `include` for cookies to another origin. `same-origin` unless set. */
    readonly credentials?: RequestCredentials;
    /** The longest time from a request to the end of its answer, in ms; 30 s unless set. */
    readonly timeoutMs?: number;
}

/** A key as it is in the map of a store, or as it is in a resource. */
type Key = string | Pick<Resource, 'key' | 'key_encoding'>;

interface SendOptions {
    /** Ends the request. A write may have happened all the same. */
    readonly signal?: AbortSignal | undefined;
}

interface WriteOptions extends SendOptions {
    /** The revision that the resource must have, or null if it must not exist; any unless set. */
    readonly revision?: string | null | undefined;
    /** Checks the write and returns the same answer, without writing. */
    readonly validateOnly?: boolean | undefined;
}

interface ListOptions extends SendOptions {
    /** The number of resources of a page, 10,000 at most; 1,000 unless set. */
    readonly pageSize?: number | undefined;
}

/** One page of a listing. All pages have the same revision and position. */
interface Page<V = unknown> extends Omit<Snapshot<V>, 'since'> {
    readonly watch: string;
    /** The number of resources on all pages. */
    readonly count: number;
}

/**
 * A compare-and-set found another revision: nothing was written. `current` is the
 * resource that was found, null if it does not exist, and undefined if it could not be read.
 */
declare class ConflictError<V = unknown> extends RefusedError {
    readonly current: Resource<V> | null | undefined;
    readonly name = "ConflictError";
    constructor(problem: Problem | undefined, current: Resource<V> | null | undefined);
}

/** The requests for resources of one gateway. All of them reject with a `RefusedError` if the gateway refuses. */
interface Requests<Values = Record<string, unknown>> {
    /** Returns a resource; undefined if it does not exist, or may not be seen. */
    get<Name extends keyof Values & string>(watch: Name, key: Key, options?: SendOptions): Promise<Resource<Values[Name]> | undefined>;
    /** Returns the pages of a watch, or of a part of it, all at one revision. A listing that takes minutes may end with status 410: begin again. */
    list<Name extends keyof Values & string>(spec: WatchSpec<Name>, options?: ListOptions): AsyncGenerator<Page<Values[Name]>, void, void>;
    /** Returns all pages as one snapshot, for instance for `initial`. A listing that ends with 410 is begun again, twice at most. */
    snapshot<Name extends keyof Values & string>(spec: WatchSpec<Name>, options?: ListOptions): Promise<Snapshot<Values[Name]>>;
    /** Writes a value, and returns the resource as it is stored. Rejects with a `ConflictError` if it does not have the revision. */
    put<Name extends keyof Values & string>(watch: Name, key: Key, value: Values[Name], options?: WriteOptions): Promise<Resource<Values[Name]>>;
    /** Deletes a resource, and returns whether there was one. Rejects with a `ConflictError` if it does not have the revision. */
    delete(watch: keyof Values & string, key: Key, options?: WriteOptions): Promise<boolean>;
}

/**
 * Returns the requests for the gateway at url, which is the same as for `watch`. Values maps the
 * name of each watch to the type of its values.
 */
declare const http: <Values = Record<string, unknown>>(url: string | URL, options?: HttpOptions) => Requests<Values>;

/** What happened to a stream, for debugging. */
type LogEvent =

/**
 * Returns a transport that reads streams as another one does, with `fetch` unless set, and reports what
 * happens: `watch('/', { transport: logged(console.debug) })`. A page that does not use it does not load it.
 */
declare function logged(log: (event: LogEvent) => void, transport?: Transport): Transport;

interface ChangesOptions {
    /** Ends the iteration, which then throws its reason. */
    readonly signal?: AbortSignal | undefined;
}

/** The newest view, and what changed since the one before it. */
interface Conflated<V> {
    readonly view: View<V>;
    /** Any key may have changed. */
    readonly replaced: boolean;
    /** The keys that were set or deleted; empty if everything was replaced. */
    readonly keys: ReadonlySet<string>;
}

/**
 * Iterates over the views of a store, beginning with the current one, whose keys are all that are
 * there. It keeps only the newest one for a loop that is slow, with the keys of those in between, so it never needs more
 * memory than there are keys. It ends when the store is closed, and throws the error if there is one.
 */
declare function changes<V>(store: Readable<V>, { signal }?: ChangesOptions): AsyncGenerator<Conflated<V>, void, void>;

/** Called for each resource. key is that of the map. */
interface ChangeHandlers<V> {
    onAdd?(resource: Resource<V>, key: string): void;
    onUpdate?(before: Resource<V>, after: Resource<V>, key: string): void;
    onDelete?(before: Resource<V>, key: string): void;
}

/**
 * Calls the handlers for what is added, updated and deleted, until the returned function is called; at
 * first, all that is there is added. After a reset they are called for the difference only. It keeps a map of the resources.
 */
declare function onChange<V>(store: Readable<V>, handlers: ChangeHandlers<V>): () => void;

/**
 * Calls run with a resource, or undefined if there is none: at once, and after each change of it,
 * until the returned function is called. All calls for one store share a subscription, and a change costs time
 * for the keys that it concerns, however many others are subscribed to.
 */
declare function onKey<V>(store: Readable<V>, key: string, run: Run<V>): () => void;

type Run<V> = (resource: Resource<V> | undefined) => void;

interface ReadyOptions {
    /** Waits until the store is in sync, and not only until it has something to show. */
    readonly inSync?: boolean | undefined;
    /** Ends the wait, which then rejects with its reason. */
    readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves with the first view that has a consistent state: at the end of the first snapshot,
 * or at once for a store that has begun with a snapshot. Rejects if the store is closed, with its error.
 */
declare function ready<V>(store: Readable<V>, { inSync, signal }?: ReadyOptions): Promise<View<V>>;

/** Sends writes: the `Requests` of `http` do. */
interface Writer {
    put(watch: string, key: string, value: any, options: WriteOptions): Promise<Resource<any>>;
    delete(watch: string, key: string, options: WriteOptions): Promise<boolean>;
}

interface OverlayWriteOptions {
    /** The revision that the resource must have, or null if it must not exist; that of what is shown unless set. */
    readonly revision?: string | null | undefined;
    /** Writes whatever the revision is. */
    readonly force?: boolean | undefined;
    readonly signal?: AbortSignal | undefined;
}

/** A store with writes over it that the gateway has not confirmed yet. */
interface Overlay<V> extends Readable<V> {
    readonly watch: string;
    /** The keys with writes that are not confirmed, and how many these are. */
    readonly pending: ReadonlyMap<string, number>;
    /**
     * Writes a value, and shows it at once. Resolves with the resource as it is stored; rejects with a
     * `ConflictError` if another one was there, or with the error of the request, whose outcome
     * may then be unknown. Then it is not shown any more, nor are writes to this key that were made after it, which
     * reject with the same error. Writes to one key are sent one after the other.
     */
    put(key: string, value: V, options?: OverlayWriteOptions): Promise<Resource<V>>;
    /** Deletes a resource, like `put`; resolves with whether there was one. */
    delete(key: string, options?: OverlayWriteOptions): Promise<boolean>;
    /** Ends it: it shows nothing new. Writes that are under way go on. */
    close(): void;
}

/**
 * Returns a view of a store that shows writes at once, confirms them when the stream brings their
 * revision, and takes them back at a conflict or a failure. It never hides a later value that
 * the stream has brought.
 */
declare const optimistic: <V>(store: Readable<V> & {
    readonly watch: string;
}, writer: Writer) => Overlay<V>;

interface PoolOptions {
    /** How long a watch stays followed after its last use, in ms; 10 s unless set. */
    readonly lingerMs?: number;
    /** How many watches stay followed without a use, the last ones; 4 unless set. */
    readonly maxLingering?: number;
}

/** A store for as long as it is used. */
interface Use<V = unknown> {
    readonly store: Store<V>;
    /** Ends the use. Only the first call counts. */
    release(): void;
}

/** Stores that several parts of a page share. */
interface Pool<Values = Record<string, unknown>> {
    /** Follows a watch, or a part of it, unless it is followed. All uses of the same definition have one store. A watch whose store was closed, by an error or by the page, is followed again. */
    use<Name extends keyof Values & string>(spec: WatchSpec<Name>): Use<Values[Name]>;
    /** Reports whether a watch, or a part of it, is followed here: it is used, or was a moment ago. */
    follows(spec: WatchSpec<keyof Values & string>): boolean;
    /** Stops following what is not used, at once. */
    clear(): void;
}

/**
 * Counts the uses of the watches of tide: the first one follows a watch, and some time after
 * the last one is released, it is removed. Watches that the page itself has added, before or after, stay followed, and several
 * pools count together.
 */
declare const pool: <Values = Record<string, unknown>>(tide: Watches<Values>, options?: PoolOptions) => Pool<Values>;

/** Returns the group of a resource, or several; undefined for none. It must depend on the resource alone. */
type GroupBy<V, G> = (resource: Resource<V>) => G | readonly G[] | undefined;

/** An index of a store: its resources by a field, or by anything else that follows from them. */
interface GroupIndex<V, G> {
    readonly view: GroupsView<V, G>;
    /** Calls run at once, and after each change, with the groups that have changed, until the returned function is called. */
    subscribe(run: (view: GroupsView<V, G>, changed: ReadonlySet<G>) => void): () => void;
    /** Ends it: its view is `closed`, and subscribe throws. */
    close(): void;
}

interface GroupsView<V, G> extends DerivedView {
    /** The resources of each group, by key. A group is another map whenever something in it has changed. No group is empty. */
    readonly groups: ReadonlyMap<G, ReadonlyMap<string, Resource<V>>>;
}

/**
 * Returns the resources of a store by group: `groupBy(pods, ({ value }) => value.node)`. After a change it costs time for
 * the changed keys. A resource for which `by` throws is in no group.
 */
declare const groupBy: <V, G extends string | number | boolean | bigint | null>(store: Readable<V>, by: GroupBy<V, G>) => GroupIndex<V, G>;

/** A filtered and sorted result that follows a store. */
interface Query<V> {
    readonly view: QueryView<V>;
    /** Calls run at once, and after each change, until the returned function is called. The keys are those whose rows were set, moved or removed. */
    subscribe(run: (view: QueryView<V>, changes: Changes) => void): () => void;
    /** Ends it: its view is `closed`, and subscribe throws. */
    close(): void;
}

interface QueryView<V> extends DerivedView {
    /** Another object whenever a row has changed. */
    readonly rows: Rows<V>;
}

/** The resources of a query, in its order. Like those of a view it is no copy: `[...rows]` stands still. */
interface Rows<V> extends Iterable<Resource<V>> {
    readonly size: number;
    at(index: number): Resource<V> | undefined;
    /** Returns the rows from start up to end, for instance those that are visible. */
    slice(start: number, end: number): Array<Resource<V>>;
}

interface QueryOptions<V> {
    /** Selects resources; all unless set. It must depend on the resource alone. One for which it throws is not selected. */
    readonly filter?: ((resource: Resource<V>) => boolean) | undefined;
    /** The order, as for `Array.sort`; resources that are equal by it come by key, as all do unless it is set. One that it cannot even compare with itself, since it throws, comes last. */
    readonly compare?: ((a: Resource<V>, b: Resource<V>) => number) | undefined;
}

/**
 * Returns the resources of a store that a filter selects, in order. After a change it costs time for the changed keys,
 * each with the logarithm of the number of rows; after a reset, that of sorting them.
 */
declare const query: <V>(store: Readable<V>, options?: QueryOptions<V>) => Query<V>;

/**
 * Chooses the rate from what the page can take: `watch(url, { maxRate: autoRate })`. There is no bound at first. If frames are
 * late while changes arrive, it takes half of the rate, or a quarter if most of them are, down to one change each five seconds, and the
 * next higher one when frames have been in time for some seconds. A hidden tab gets changes every five seconds. Where there is no page, as in Node, there is no bound.
 */
declare const autoRate: (chosen: () => void) => RateControl;

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
type HubOptions = Pick<WatchOptions, 'getToken' | 'onError' | 'headers' | 'credentials' | 'transport'> & {
    /** How often changes are sent at most: a rate such as `2/s` or `10/m`. Whenever there are some unless set. */
    readonly maxRate?: string;
};

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
 * getToken, headers, credentials, transport and a fixed maxRate apply to a connection of this tab: those of the
 * worker are passed to `serveTabs`. With autoRate, a tab chooses how often it gets changes from whatever holds the connection.
 */
declare function watchShared<Values = Record<string, unknown>>(url: string | URL, options?: SharedOptions<keyof NoInfer<Values> & string>): Watches<Values>;

/** What a TanStack Table is sorted by, and which page it shows: the parts of its state with these names. */
interface TableState {
    readonly sorting: ReadonlyArray<{
        readonly id: string;
        readonly desc: boolean;
    }>;
    readonly pagination: {
        readonly pageIndex: number;
        readonly pageSize: number;
    };
}

interface TableOrder {
    /** The order while no column is sorted. */
    readonly order: string;
    /** The paths of columns whose `id` is not the path, by `id`. */
    readonly paths?: Readonly<Record<string, string>>;
}

/** Returns which window a table shows: for `watchWindow`, and for `move` when the state has changed. */
declare function windowOfTable({ sorting, pagination: { pageIndex, pageSize } }: TableState, { order, paths }: TableOrder): {
    readonly order: string;
    readonly offset: number;
    readonly limit: number;
};

/** The options of a table that leaves sorting, filters and pages to the gateway. */
interface WindowTableOptions<V> {
    readonly data: ReadonlyArray<Resource<V>>;
    readonly rowCount: number;
    readonly getRowId: (row: Resource<V>) => string;
    readonly manualSorting: true;
    readonly manualFiltering: true;
    readonly manualPagination: true;
}

/** Returns the options of a table that shows a window. `data` is the same array until a row has changed. */
declare const windowTableOptions: <V>({ rows, total }: Pick<WindowView<V>, 'rows' | 'total'>) => WindowTableOptions<V>;

/** A window at one moment: a new object whenever anything in it changes. */
interface WindowView<V = unknown> extends DerivedView, Place {
    /** In order; another array whenever one of them has changed. A resource is the same object until it changes. */
    readonly rows: ReadonlyArray<Resource<V>>;
    /** The window has been moved, and the rows are still those from before. */
    readonly moving: boolean;
}

/** What is done with a resource whose value does not fit: it is left out, or kept as it is, or the store is closed. */
type OnInvalid = 'drop' | 'keep' | 'close';

interface ValidateOptions<P extends OnInvalid = OnInvalid> {
    /** `drop` unless set. */
    readonly onInvalid?: P | undefined;
    /** Called for each resource whose value does not fit. */
    readonly onIssues?: ((resource: Resource, issues: readonly SchemaIssue[]) => void) | undefined;
}

/** What is wrong with a value, and where. */
interface SchemaIssue {
    readonly message: string;
    readonly path?: ReadonlyArray<PropertyKey | {
        readonly key: PropertyKey;
    }> | undefined;
}

/** A value did not fit its schema, with `onInvalid: 'close'`. */
declare class InvalidValueError extends Error {
    readonly resource: Resource;
    readonly issues: readonly SchemaIssue[];
    readonly name = "InvalidValueError";
    constructor(resource: Resource, issues: readonly SchemaIssue[]);
}

/** A store whose values are those that a schema returns. It is followed until it is closed. */
interface Validated<V> extends Readable<V> {
    readonly watch: string;
    close(): void;
}

/**
 * Returns a store with the values that a schema returns for those of another one. Each value is validated once. With
 * `onInvalid: 'close'` it closes with an `InvalidValueError`, and shows the last state that fits. A value for which the schema
 * throws does not fit. The schema must be synchronous: otherwise the store closes with a TypeError.
 */
declare function validated<S extends StandardSchema>(store: Readable & {
    readonly watch: string;
}, schema: S, options: ValidateOptions<'keep'> & {
    readonly onInvalid: 'keep';
}): Validated<unknown>;
declare function validated<S extends StandardSchema>(store: Readable & {
    readonly watch: string;
}, schema: S, options?: ValidateOptions<'drop' | 'close'>): Validated<SchemaOutput<S>>;

/**
 * A schema of any library that implements Standard Schema, version 1: zod, valibot, arktype and others. The types are
 * those of https://standardschema.dev, as far as they are used here.
 */
interface StandardSchema<Input = unknown, Output = Input> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
        readonly types?: {
            readonly input: Input;
            readonly output: Output;
        } | undefined;
    };
}

type SchemaResult<Output> = {
    readonly value: Output;
    readonly issues?: undefined;
} | {
    readonly issues: ReadonlyArray<SchemaIssue>;
};

/** The type of the values that a schema returns. */
type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** What to draw at some places of a list. */
interface Drawn<V = unknown> {
    /** As many rows as there are places, if so many are loaded; the first one is for the first place. */
    readonly rows: ReadonlyArray<Resource<V>>;
    /** The rows are those of the places. Otherwise they are others, until the window has moved. */
    readonly loaded: boolean;
}

/** Where a window is, and what it has. */
type Seen<V = unknown> = Pick<WindowView<V>, 'rows' | 'before' | 'total'>;

/**
 * Returns a function for a list that scrolls over all resources of a window's watch. Called with the places that are on the
 * screen, from first to before last, whenever these or the window change, it returns what to draw there, and moves the window
 * with the screen: before it comes to the end of the window, and one move after the other, to where the screen is then.
 *
 * limit is that of the window: some times the number of rows on the screen.
 */
declare function virtual<V>(window: LiveWindow<V>, limit: number): (first: number, last: number) => Drawn<V>;

/** A part of a sorted watch that follows it. */
interface LiveWindow<V = unknown> {
    readonly view: WindowView<V>;
    /** Calls run at once, and after each change, until the returned function is called. */
    subscribe(run: (view: WindowView<V>) => void): () => void;
    /** Moves the window. What it shows stays until all of the new rows are there. A mistake throws a TypeError, and nothing is moved. */
    move(to: Move): void;
    /** Ends it: its view is `closed`, and subscribe throws. */
    close(): void;
}

/** What changes when a window moves. Another filter or another order may take any resource in or out. */
type Move = Pick<Definition, 'offset' | 'after' | 'limit' | 'order' | 'prefix' | 'keys' | 'labels' | 'filter'>;

/**
 * Returns where a window should begin for some places, so that it has as many on both sides of them; undefined while it has
 * the places, and some to spare.
 */
declare function offsetFor({ rows, before, total }: Seen, first: number, last: number, limit: number): number | undefined;

/** Returns what to draw at some places. */
declare function drawn<V>({ rows, before, total }: Seen<V>, first: number, last: number): Drawn<V>;

/** What a window is of, and where it begins. */
type WindowOptions<Name extends string = string> = {
    readonly watch: Name;
} & Definition & Required<Pick<Definition, 'order' | 'limit'>>;

/**
 * Follows so many resources of a watch in an order, for a page that shows no more: only these are sent, with the number
 * of all. It is a store of its own among those of watches, with its own stream if the watch has another one. A mistake in `order`,
 * `limit` or `offset` throws a TypeError.
 */
declare const watchWindow: <Values, Name extends keyof Values & string>(watches: Watches<Values>, options: WindowOptions<Name>) => LiveWindow<Values[Name]>;

/**
 * Returns a function that compares resources as a gateway does: by null, false, true, numbers, texts by code points, and
 * then arrays and objects, which are all equal. What is absent comes last in both directions, and what is equal comes in
 * the order of its keys. Numbers are compared as they were parsed: with the digits that `parse` has kept. Throws a TypeError
 * that says what is wrong with an order, and where.
 */
declare const compareBy: (order: string | readonly string[]) => ((a: Resource, b: Resource) => number);

export { AnswerRequest, AuthenticatedOptions, BookmarkEvent, ChangeHandlers, Changes, ChangesOptions, Conflated, ConflictError, CountOptions, CountedGroup, CountsView, Definition, DeleteEvent, DeliveryOptions, DerivedView, Drawn, Encoding, EndOfSnapshotEvent, Event, GoodbyeEvent, GroupBy, GroupIndex, GroupsView, HashedResource, HelloEvent, HttpOptions, Hub, HubOptions, Instance, InvalidValueError, Key, ListOptions, Listener, LiveCounts, LiveWindow, LogEvent, Move, NotAStreamError, OnError, OnInvalid, OnVerify, Overlay, OverlayWriteOptions, Page, Place, Pool, PoolOptions, Port, Problem, Query, QueryOptions, QueryView, RateChooser, RateControl, Readable, ReadyOptions, Receiver, RefusedError, Requests, ResetEvent, Resource, Revision, Rows, SchemaIssue, SchemaOutput, Seen, SendOptions, Session, SessionRequest, SharedOptions, Snapshot, StandardSchema, State, StatusEvent, Store, StreamID, StreamRequest, TableOrder, TableState, Transport, UpsertEvent, Use, ValidateOptions, Validated, Value, View, WatchName, WatchOptions, WatchSpec, Watches, WindowOptions, WindowTableOptions, WindowView, WriteOptions, Writer, authenticated, autoRate, beginSession, changes, compareBy, drawn, endSession, eventSourceTransport, getSession, groupBy, http, logged, mapKey, offsetFor, onChange, onKey, onLogout, optimistic, parse, pool, query, ready, reportDelivery, serveTabs, sharedTransport, snapshot, stringify, validated, virtual, watch, watchCounts, watchShared, watchWindow, windowOfTable, windowTableOptions };
