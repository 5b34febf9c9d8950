export type { OnError } from './connection.js';
export { NotAStreamError, RefusedError } from './errors.js';
export { eventSourceTransport } from './event_source.js';

export type { Listener, Readable } from './listeners.js';
export type {
  BookmarkEvent,
  DeleteEvent,
  Encoding,
  EndOfSnapshotEvent,
  Event,
  GoodbyeEvent,
  HelloEvent,
  Instance,
  Problem,
  ResetEvent,
  Revision,
  StatusEvent,
  StreamID,
  UpsertEvent,
  Value,
  WatchName,
} from './protocol.js';
export type { RateChooser, RateControl } from './rate_control.js';
export type { Changes } from './replica.js';
export { mapKey, type Resource } from './resource.js';
export type { HashedResource, Snapshot } from './snapshot.js';
export type { Definition, WatchSpec } from './spec.js';
export { type OnVerify, type Store, snapshot } from './store.js';
export type { AnswerRequest, Receiver, StreamRequest, Transport } from './transport.js';
export type { State, View } from './view.js';
export { type Watches, type WatchOptions, watch } from './watch.js';
