// Generated from openapi/openapi.json by scripts/contract.js. Do not edit.

/** One event. Clients must ignore unknown types. */
export type Event =
  | HelloEvent
  | ResetEvent
  | UpsertEvent
  | DeleteEvent
  | EndOfSnapshotEvent
  | BookmarkEvent
  | StatusEvent
  | GoodbyeEvent;

export interface ListWatchesResponse {
  instance: Instance;
  watches: Array<Watch>;
}

/** RFC 9457. */
export interface Problem {
  /** What is wrong, where, and what would be right. */
  detail: string;
  key?: string;
  key_encoding?: Encoding;
  /** Name of the parameter or header. */
  parameter?: string;
  status: number;
  title: string;
  type: string;
  watch?: string;
}

/** Resource is one member of a watch. */
export interface Resource {
  /** `value` is a string that contains bytes in base64. */
  encoding?: "base64";
  /** Unique in the watch. Base64 where key_encoding says so. */
  key: string;
  /** `key` is in base64, because the upstream's key is not UTF-8. */
  key_encoding?: "base64";
  revision: Revision;
  value: Value;
}

export interface Subscribers {
  /** The number of all subscribers, or of those of the named watch. */
  count: number;
  instance: Instance;
  /** The last hundred disconnects, newest first. */
  left: Array<Departure>;
  /** The number of disconnects by reason since the start of the process. */
  left_reasons: Record<string, number>;
  /** Sorted by lag, largest first, then by age, oldest first. */
  subscribers: Array<Subscriber>;
  /** In order of name. */
  upstreams: Array<WatchUpstream>;
}

/** The first event of every response. */
export interface HelloEvent {
  /** The longest silence. */
  heartbeat_ms: number;
  instance?: Instance;
  type: "hello";
  watches: Array<{
    mode: "snapshot" | "resume";
    watch: WatchName;
  }>;
}

/** Forget everything known of this watch; a full snapshot follows. */
export interface ResetEvent {
  reason: "initial" | "expired" | "ahead" | "epoch_changed" | "invalid_position";
  type: "reset";
  watch: WatchName;
}

/** A resource in the snapshot, or one that was created or changed, with its full value. */
export interface UpsertEvent {
  encoding?: Encoding;
  key: string;
  key_encoding?: Encoding;
  revision: Revision;
  type: "upsert";
  value: Value;
  watch: WatchName;
}

/** A resource was deleted, or left the view. */
export interface DeleteEvent {
  key: string;
  key_encoding?: Encoding;
  revision: Revision;
  type: "delete";
  watch: WatchName;
}

/** The client now has exactly the state at `revision`. After a resume, "caught up". */
export interface EndOfSnapshotEvent {
  /** Number of resources. */
  count: number;
  /** After a resume. */
  resumed?: true;
  revision: Revision;
  type: "end_of_snapshot";
  watch: WatchName;
}

/** Progress without data; also ends a catch-up. */
export interface BookmarkEvent {
  /** After an outage: resources that were created and deleted before this revision may be unknown here, so no position of this watch below it is resumed. A server that serves the watch to others must not resume such positions either; other clients ignore it. */
  horizon?: Revision;
  revision: Revision;
  /** After a catch-up: changes that this subscriber did not receive individually. */
  skipped?: number;
  type: "bookmark";
  watch: WatchName;
}

/** The freshness of the watch, or of this subscriber (`catching_up`), changed. */
export interface StatusEvent {
  reason?: string;
  since?: string;
  state: "priming" | "in_sync" | "resyncing" | "stale" | "catching_up";
  type: "status";
  watch: WatchName;
}

/** The last event before the server ends the stream on purpose. */
export interface GoodbyeEvent {
  reason: "draining" | "max_age" | "overloaded" | "token_expired" | "revoked" | "watch_removed" | "complete";
  /** When to reconnect. */
  retry_ms: number;
  type: "goodbye";
}

/** Names the process that answers. Counters of different instances are independent of each other. */
export type Instance = string;

/** Watch is one named collection at one source. */
export interface Watch {
  /** Size of the watch's log in bytes. */
  bytes: number;
  /** Changes committed since the start of the process. The first snapshot, and one that begins another epoch, do not count as changes. */
  changes: number;
  /** Number of resources. */
  count: number;
  /** The name of one revision order. Empty until the first snapshot. */
  epoch: string;
  name: WatchName;
  /** One human-readable sentence, if the watch is not `in_sync`. For operators it includes the error text. */
  reason?: string;
  revision: Revision;
  /** When this state began; for resyncing and stale, when the watch was last in sync. */
  since?: string;
  /** Name of the source in the configuration. */
  source: string;
  state: "priming" | "in_sync" | "resyncing" | "stale";
  subscribers: number;
  upstream: Upstream;
  writable: boolean;
}

export type Encoding = "base64";

/** Unsigned 64-bit number, the place in the upstream's own order. */
export type Revision = string;

/** Any JSON, with digits and key order as in the upstream. */
export type Value = unknown;

/** A stream that has ended, in its final state. */
export type Departure = Subscriber & {
  left: string;
  /** The reason of its `goodbye`, or without one: `client_closed` (the client closed the connection), `write_timeout` (the client did not read), `aborted` (the gateway closed the connection without a clean end). */
  reason: "draining" | "max_age" | "overloaded" | "token_expired" | "revoked" | "watch_removed" | "complete" | "client_closed" | "write_timeout" | "aborted";
};

/** One stream, `WatchList` call, or waiting long poll. */
export interface Subscriber {
  /** The client's address, with its port. Behind a trusted proxy, the address that the proxy names, without a port. */
  address?: string;
  /** Size of the events sent so far; compressed size where they are compressed. */
  bytes: number;
  /** Values are being skipped now. */
  catching_up: boolean;
  /** Empty: not compressed. */
  encoding: "gzip" | "";
  /** Number of events sent so far, of all types. */
  events: number;
  /** Identifies the stream within this process. */
  id: string;
  /** Changes of its watches that are committed but not yet being sent to it; before the end of a snapshot, resources too. An upper bound for a subscriber with a prefix, and while `catching_up`. */
  lag: number;
  position?: Position;
  since: string;
  /** Changes that it did not receive individually. */
  skipped: number;
  transport: "sse" | "ndjson" | "poll" | "grpc";
  /** The client's `User-Agent`, at most 128 bytes of it. */
  user_agent?: string;
  watches: Array<WatchName>;
}

/** The state and the incidents of the connection of a watch to its upstream. */
export interface WatchUpstream {
  /** A connection is established and has caught up. */
  connected: boolean;
  /** The last hundred, newest first. */
  incidents: Array<Incident>;
  /** By reason, since the start of the process. */
  reconnects: Record<string, number>;
  /** By reason, since the start of the process. */
  resyncs: Record<string, number>;
  source: string;
  watch: WatchName;
}

export type WatchName = string;

/** Upstream is the state of the connection of a watch to its upstream. */
export interface Upstream {
  /** Number of connection attempts since then; 0 while connected. */
  attempts: number;
  /** Whether a connection is established and has caught up. */
  connected: boolean;
  /** Why the last connection ended or could not be made: the error text for operators, the kind of error for others. It is kept after the upstream is back. */
  last_error?: string;
  last_error_at?: string;
  /** When connected last changed; missing for a watch that was never started. */
  since?: string;
}

/** Opaque. Printable ASCII. */
export type Position = string;

/** Repeated identical incidents are combined into one. */
export interface Incident {
  /** The time of the last occurrence. */
  at: string;
  /** The text of the error. */
  detail?: string;
  /** The time of the first occurrence. */
  first: string;
  /** `reconnect`: a connection ended, or could not be made. `resync`: a complete snapshot was loaded. */
  kind: "reconnect" | "resync";
  /** A name in `reconnects` or in `resyncs`. */
  reason: string;
  times: number;
}
