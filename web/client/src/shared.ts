export { Hub, type HubOptions } from './hub.js';
export type { Port } from './port.js';
export { sharedTransport } from './port_transport.js';
export { type SharedOptions, serveTabs, watchShared } from './watch_shared.js';
