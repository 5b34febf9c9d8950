export { serveTabs, watchShared, type SharedOptions } from './watch_shared.js';
export { Hub, type HubOptions } from './hub.js';
export type { Port } from './port.js';
export { sharedTransport } from './port_transport.js';
