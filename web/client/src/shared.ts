export { Hub } from './hub.js';
export { sharedTransport } from './port_transport.js';
