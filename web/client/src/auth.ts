export { authenticated, type AuthenticatedOptions } from './authenticated.js';
export { beginSession, endSession, getSession, type Session, type SessionRequest } from './session.js';
