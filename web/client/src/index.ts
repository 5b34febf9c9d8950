export { watch, type WatchOptions, type Watches, type WatchSpec } from './watch.js';
export type { Listener, Store } from './store.js';
export type { Changes } from './replica.js';
export { mapKey, type Resource } from './resource.js';
export type { State, View } from './view.js';
export { NotAStreamError, RefusedError, type FatalError } from './errors.js';
export { eventSourceTransport } from './event_source.js';
export type { Receiver, StreamRequest, Transport } from './transport.js';
export type * from './protocol.js';
