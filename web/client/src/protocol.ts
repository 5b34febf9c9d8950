// Generated from openapi/watchtidev1/openapi.json by scripts/protocol.js. Do not edit.

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

export interface Client {
  /** With the port, if it is that of a connection. Absent: the connection has no address. */
  address?: string;
  instance: Instance;
  /** `direct`: no header tells of a proxy. `trusted`: the address is from the header of a proxy in `http.trusted_proxies`. `ignored`: there is a proxy, which is not among them, and its address is given. `missing`: a proxy that is among them has named no client. */
  naming: "direct" | "trusted" | "ignored" | "missing";
  /** The paths for operators answer this client, such as `/v1/subscribers`. */
  operator: boolean;
}

export interface History {
  changes: Array<HistoricChange>;
  /** As far back as this answer reaches, no change after this revision is missing. Earlier ones may be: their values were compacted, or the gateway began or was cut off. */
  complete_since: {
    revision: Revision;
    /** When the watch was there. Absent if that is not known. */
    time?: string;
  };
  instance: Instance;
  /** `before` for what is older. Empty: there is nothing more. */
  next: string;
  position: Position;
  revision: Revision;
  watch: WatchName;
}

export interface ListWatchesResponse {
  instance: Instance;
  watches: Array<Watch>;
}

export interface Replicas {
  /** Whether there is `operations.replicas`. */
  configured: boolean;
  instance: Instance;
  self: ReplicaFacts;
  /** The others. */
  siblings: Array<Sibling>;
}

/** Resource is one member of a watch. */
export interface Resource {
  /** `value` is a string that holds bytes in base64. */
  encoding?: "base64";
  /** Unique in the watch. Base64 where key_encoding says so. */
  key: string;
  /** `key` is in base64, because the upstream's key is not UTF-8. */
  key_encoding?: "base64";
  revision: Revision;
  value: Value;
}

/** Each list has one entry for each interval, the oldest first. */
export interface Series {
  /** Watches and templates that there are. */
  count: number;
  /** True with `http.delivery_reports`. */
  delivery_reports: boolean;
  instance: Instance;
  /** Number of intervals. */
  samples: number;
  /** Of the first interval, in seconds since 1970 by the clock of the gateway; 0 if there is none. */
  start: number;
  /** Length of an interval, in seconds. Of those of 10 s, the newest may not have ended yet. */
  step: 1 | 10;
  /** Of all watches together: sums, and of `lag` and `states` the worst. Null if `watch` is given, and before the first interval. */
  total: Figures | null;
  /** In order of name. */
  watches: Array<WatchSeries>;
  /** Watches that have no figures. */
  without: Array<{
    reason: string;
    watch: string;
  }>;
}

export interface Subscribers {
  /** All that there are, and that are selected. */
  count: number;
  /** With `group`. The largest groups, the largest first. */
  groups?: Array<NamedGroup>;
  instance: Instance;
  lag: LagCounts;
  /** The last hundred that left, the newest first. */
  left: Array<Departure>;
  /** The minutes of the last hour in which streams ended, the oldest first. */
  left_minutes: Array<{
    minute: string;
    reasons: Record<string, number>;
  }>;
  /** How many left for which reason since the start of the process. */
  left_reasons: Record<string, number>;
  /** Continues the list as `after`. Absent: nothing follows. */
  next?: string;
  /** The subscribers of all other groups; absent if there is none. */
  others?: SubscriberFigures;
  /** In the order that `sort` names. */
  subscribers: Array<Subscriber>;
  /** In order of name. */
  upstreams: Array<WatchUpstream>;
  /** The views that clients have asked for and that hold the most, the largest first. */
  views: Array<ListedView>;
}

export interface Topology {
  all: SubscriberFigures;
  at: string;
  /** The largest groups of subscribers, the largest first. */
  groups: Array<TopologyGroup>;
  instance: Instance;
  /** Those that are not listed; absent if there is none. */
  other_views?: {
    bytes: number;
    resources: number;
    subscribers: number;
    views: number;
  };
  /** Those that are not listed; absent if there is none. */
  others?: TopologyOthers;
  /** In order of name. */
  sources: Array<TopologySource>;
  /** The views that clients have asked for and that hold the most, the largest first. */
  views: Array<TopologyView>;
  /** In order of name. */
  watches: Array<TopologyWatch>;
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
  /** With `order`: it is still there after that change, but not in the window any more. Not said where a stream resumes, catches up or has a `max_rate`. */
  left?: true;
  revision: Revision;
  type: "delete";
  watch: WatchName;
}

/** The client now holds exactly the state at `revision`. After a resume, "caught up". */
export interface EndOfSnapshotEvent {
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

/** Progress without data; also ends a catch-up. */
export interface BookmarkEvent {
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

export interface HistoricChange {
  /** When it became visible at this replica, or up to a second before. Absent if that is not known, as of what a snapshot told. */
  committed_at?: string;
  /** Values before it may have been left out by the upstream. */
  conflated?: boolean;
  encoding?: "base64";
  key: string;
  key_encoding?: "base64";
  revision: Revision;
  type: "upsert" | "delete";
  /** As it is stored. Absent in a delete. */
  value?: unknown;
}

/** Unsigned 64-bit number, the place in the upstream's own order. */
export type Revision = string;

/** Opaque. Printable ASCII. */
export type Position = string;

export type WatchName = string;

/** Watch is one named collection at one source. */
export interface Watch {
  /** Bytes that the watch's log holds. */
  bytes: number;
  /** Changes committed since the start of the process. The first snapshot, and one that begins another epoch, are no changes. */
  changes: number;
  /** Number of resources. */
  count: number;
  /** Short name of one revision order. Empty until the first snapshot. */
  epoch: string;
  name: WatchName;
  /** True if the one who asks may see only a part of the watch, else missing. Then `count`, `bytes`, `subscribers` and `changes` are 0, since they would tell of the rest. */
  partial?: boolean;
  /** One sentence for a person, where the watch is not `in_sync`. To operators it has the text of the error. */
  reason?: string;
  revision: Revision;
  /** Since when the watch is in this state; for a watch that is not in_sync, since when it has not been. */
  since?: string;
  /** Name of the source in the configuration. */
  source: string;
  state: "priming" | "in_sync" | "resyncing" | "stale";
  subscribers: number;
  upstream: Upstream;
  writable: boolean;
}

export interface ReplicaFacts {
  /** The name of the machine, or of the pod. A replica of an older version does not say it. */
  host?: string;
  instance: string;
  limits: Array<LimitInUse>;
  /** As `/readyz` says. */
  ready: boolean;
  /** Why it is not ready, or what else is wrong. */
  reasons: Array<string>;
  started: string;
  uptime_seconds: number;
  version: string;
  /** Without those of templates. */
  watches: Array<WatchOfInstance>;
}

export interface Sibling {
  address: string;
  answer?: ReplicaFacts;
  /** Why there is no answer. */
  error?: string;
  took_seconds: number;
}

/** Any JSON, digits and key order as the upstream has them. */
export type Value = unknown;

export interface Figures {
  /** Of these events per second, before compression. */
  bytes: Array<number | null>;
  /** Committed per second. */
  changes: Array<number | null>;
  /** From the commit of a change until a browser has painted it, in milliseconds, as browsers report it. */
  delivery_p50_ms: Array<number | null>;
  /** Of one in a hundred it is more. */
  delivery_p99_ms: Array<number | null>;
  /** Changes that browsers have reported. */
  delivery_reports: Array<number | null>;
  /** Sent per second, over all subscribers. */
  events: Array<number | null>;
  /** Changes that the subscriber furthest behind lacks. */
  lag: Array<number | null>;
  /** From the commit of a change until it is written, in milliseconds: the median of what `watchtide_commit_to_write_seconds` counts. Null if nothing was measured. */
  latency_p50_ms: Array<number | null>;
  /** Of one in a hundred it is more. */
  latency_p99_ms: Array<number | null>;
  /** The worst freshness in each interval, those in a row with the same one together: `stale` is worse than `resyncing`, that than `priming`, `in_sync` and `idle`. */
  states: Array<StateRun>;
  /** At the end of the interval. */
  subscribers: Array<number | null>;
}

/** The figures of a watch of the configuration, or of all watches of a template. */
export type WatchSeries = Figures & {
  /** True for a template, else missing. */
  template?: boolean;
  watch: string;
};

/** A group of subscribers with something in common. */
export type NamedGroup = {
  /** An application: the first product of the user agent, or the browser. A network: the first 24 bits of an IPv4 address, 56 of an IPv6 address. A transport. A principal and an OAuth client: the name, and in parentheses the issuer or, if it is this gateway, the mechanism: `ann (https://idp.example.com)`; `anonymous`, `unknown`: the client has proved nothing, or its credential names no OAuth client. A watch. */
  name: string;
} & SubscriberFigures;

/** How many subscribers are how far behind. */
export interface LagCounts {
  buckets: Array<{
    count: number;
    /** The highest lag that is counted here; those of the bucket before are not. Absent from the last one. */
    up_to?: number;
  }>;
  max: number;
}

/** A stream that has ended, as it was then. */
export type Departure = Subscriber & {
  left: string;
  /** The reason of its `goodbye`, or without one: `client_closed` (the client hung up), `write_timeout` (it did not read), `aborted` (the gateway closed it as it was). */
  reason: "draining" | "max_age" | "overloaded" | "token_expired" | "revoked" | "watch_removed" | "watch_replaced" | "complete" | "client_closed" | "write_timeout" | "aborted";
};

/** Those of several subscribers together. */
export interface SubscriberFigures {
  bytes: number;
  count: number;
  events: number;
  lag: LagCounts;
  skipped: number;
}

/** One stream, call of `WatchList`, or long poll that waits. */
export interface Subscriber {
  /** Of the client, with its port. Behind a trusted proxy the one that the proxy names, without a port. */
  address?: string;
  /** Of events sent so far, compressed where they are. */
  bytes: number;
  /** Values are being skipped now. */
  catching_up: boolean;
  /** Empty: sent as it is. */
  encoding: "gzip" | "zstd" | "";
  /** Sent so far, of all types. */
  events: number;
  /** Names the stream, in this process. */
  id: string;
  /** Changes of its watches that are committed and not on their way to it; before the end of a snapshot, resources too. An upper bound while `catching_up`. */
  lag: number;
  position?: Position;
  principal?: SubscriberPrincipal;
  since: string;
  /** Changes that it did not see one by one. */
  skipped: number;
  transport: "sse" | "ndjson" | "poll" | "grpc";
  /** What the client calls itself, at most 128 bytes of it. */
  user_agent?: string;
  /** Which part it follows, of the watches that it does not follow as a whole. */
  views?: Array<View>;
  watches: Array<WatchName>;
}

/** How a watch fares with its upstream. */
export interface WatchUpstream {
  /** A connection is up that has caught up. */
  connected: boolean;
  /** The last hundred, the newest first. */
  incidents: Array<Incident>;
  /** By reason, since the start of the process. */
  reconnects: Record<string, number>;
  /** By reason, since the start of the process. */
  resyncs: Record<string, number>;
  /** What the upstream keeps until the gateway has confirmed it, as the WAL of a replication slot. Absent if that is not known. */
  retained_bytes?: number;
  source: string;
  watch: WatchName;
}

/** A view, which all who ask for the same share. */
export type ListedView = View & {
  /** That it holds. */
  bytes: number;
  resources: number;
  subscribers: number;
};

/** Subscribers of one application, in one network, over one transport; with `group`, of one principal or one OAuth client, which is the only one of these members. */
export type TopologyGroup = {
  application?: string;
  /** As in `groups` of `/v1/subscribers`. */
  client_id?: string;
  follows: Array<TopologyEdge>;
  network?: string;
  /** As in `groups` of `/v1/subscribers`. */
  principal?: string;
  transport?: "sse" | "ndjson" | "poll" | "grpc";
} & SubscriberFigures;

/** The groups that are not listed. */
export type TopologyOthers = {
  follows: Array<TopologyEdge>;
  /** How many there are. */
  groups: number;
} & SubscriberFigures;

export interface TopologySource {
  /** How many there were since then. */
  attempts?: number;
  /** How many of its watches have a connection. */
  connected: number;
  name: string;
  /** Why the last attempt failed, in full. */
  reason?: string;
  /** When the longest of its outages began. */
  since?: string;
  /** Its `type` in the configuration, such as `etcd`; `view`: a watch that is a view of another one. Absent: unknown. */
  type?: string;
  watches: number;
}

export type TopologyView = {
  /** The same in each answer. */
  id: string;
} & ListedView;

export interface TopologyWatch {
  /** Of a count of another watch: the paths of the fields, with commas between them. */
  by?: string;
  bytes: number;
  /** Since the start of the process. */
  changes: number;
  name: WatchName;
  /** Why it is not `in_sync`, in full. */
  reason?: string;
  resources: number;
  /** Since when it is in this state. */
  since?: string;
  source: string;
  state: "priming" | "in_sync" | "resyncing" | "stale";
  subscribers: number;
  /** The template that has made it. */
  template?: string;
}

/** Names a stream, so that its windows can be moved, and that it can be renewed if the gateway asks who its clients are. */
export type StreamID = string;

/** The digest of a state: the number of its resources and the sum of their hashes. `docs/protocol.md` has the function. */
export type Digest = string;

/** Upstream says how the connection of a watch to its upstream fares. */
export interface Upstream {
  /** How often the upstream was tried since then; 0 while connected. */
  attempts: number;
  /** Whether a connection is up that has caught up. */
  connected: boolean;
  /** Why the last connection ended or could not be made: to operators the text of the error, to others what kind it was. It stays after the upstream is back. */
  last_error?: string;
  last_error_at?: string;
  /** When the upstream is tried again; missing while it is connected or tried. */
  next_attempt_at?: string;
  /** When connected last changed; missing for a watch that was never started. */
  since?: string;
}

export interface LimitInUse {
  /** Absent if there is no limit. */
  most?: number;
  name: string;
  unit: "" | "bytes";
  used: number;
  /** How many wait for some of it. Absent if none do. */
  waiting?: number;
}

export interface WatchOfInstance {
  epoch: string;
  memory?: MemoryInUse;
  name: WatchName;
  reason?: string;
  revision: Revision;
  since: string;
  state: string;
}

/** Intervals in a row. */
export interface StateRun {
  /** How many they are. */
  samples: number;
  /** Missing: there are no figures. `idle`: nobody follows the watch, and it runs on demand. */
  state?: "idle" | "in_sync" | "priming" | "resyncing" | "stale";
}

/** Who the client has proved to be; absent if it has proved nothing. At most 256 bytes of each text. */
export interface SubscriberPrincipal {
  /** The OAuth client that a JWT was issued to: its claim `azp`, or else `client_id`. Absent: it names none. */
  client_id?: string;
  /** Who issued the credential. Absent: this gateway. */
  issuer?: string;
  mechanism: "token" | "jwt" | "certificate" | "kubernetes";
  name: string;
}

/** The part of a watch that a stream follows, in canonical form. */
export interface View {
  after?: string;
  /** The paths by which it is counted, with commas between them. */
  by?: string;
  /** With commas between the paths. */
  fields?: string;
  filter?: string;
  /** With commas between them; of many the first ones, and an ellipsis. */
  keys?: string;
  labels?: string;
  limit?: number;
  offset?: number;
  /** That of a window. */
  order?: string;
  prefix?: string;
  /** The path of the field that is added. */
  sum?: string;
  watch: WatchName;
}

/** The same several times in a row is one. */
export interface Incident {
  /** When it happened last. */
  at: string;
  /** The text of the error. */
  detail?: string;
  /** When it happened first. */
  first: string;
  /** `reconnect`: a connection ended, or could not be made. `resync`: a complete snapshot was taken over. */
  kind: "reconnect" | "resync";
  /** A name in `reconnects` or in `resyncs`. */
  reason: string;
  times: number;
}

/** How many subscribers of a group follow a watch, or a view of it. At most 32 for each group. */
export interface TopologyEdge {
  count: number;
  /** The `id` of the view, or `others` if it is not listed. Absent: all of the watch. */
  view?: string;
  watch: WatchName;
}

/** What a watch holds, in bytes, and its own ceiling. A replica of an older version does not say it. */
export interface MemoryInUse {
  /** Absent if the watch has no ceiling of its own. */
  most?: number;
  /** A watch that needs more becomes `stale`. Absent if it has no ceiling of its own. */
  most_served?: number;
  /** Of what is served and not superseded. */
  served: number;
  used: number;
}
