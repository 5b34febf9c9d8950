// Generated from openapi/openapi.json by scripts/protocol.js. Do not edit.

/** One event. Clients ignore types that they do not know. */
export type Event =
  | HelloEvent
  | ResetEvent
  | UpsertEvent
  | DeleteEvent
  | EndOfSnapshotEvent
  | BookmarkEvent
  | StatusEvent
  | GoodbyeEvent;

/** RFC 9457. */
export interface Problem {
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

/** The first event of every response. */
export interface HelloEvent {
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

/** Forget everything known of this watch; a full snapshot follows. */
export interface ResetEvent {
  reason: "initial" | "expired" | "ahead" | "epoch_changed" | "invalid_position";
  type: "reset";
  watch: WatchName;
}

/** A resource in the snapshot, or created or changed. Carries the full value. */
export interface UpsertEvent {
  encoding?: Encoding;
  key: string;
  key_encoding?: Encoding;
  revision: Revision;
  type: "upsert";
  value: Value;
  watch: WatchName;
}

/** A resource is gone, or left the view. */
export interface DeleteEvent {
  key: string;
  key_encoding?: Encoding;
  revision: Revision;
  type: "delete";
  watch: WatchName;
}

/** The client now holds exactly the state at `revision`. After a resume, "caught up". */
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
export interface StatusEvent {
  reason?: string;
  since?: string;
  state: "priming" | "in_sync" | "resyncing" | "stale" | "catching_up";
  type: "status";
  watch: WatchName;
}

/** The last event before the server ends the stream on purpose. */
export interface GoodbyeEvent {
  reason: "draining" | "max_age" | "overloaded" | "token_expired" | "revoked" | "watch_removed" | "watch_replaced" | "complete";
  /** When to come back. */
  retry_ms: number;
  type: "goodbye";
}

export type Encoding = "base64";

/** Names the process that answers. Counters of two instances have nothing to do with each other. */
export type Instance = string;

/** Names a stream, so that it can be renewed, if the gateway asks who its clients are. */
export type StreamID = string;

export type WatchName = string;

/** Unsigned 64-bit number, the place in the upstream's own order. */
export type Revision = string;

/** Any JSON, digits and key order as the upstream has them. */
export type Value = unknown;
