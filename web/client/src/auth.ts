export { type AuthenticatedOptions, authenticated } from './authenticated.js';
export { beginSession, endSession, getSession, type Session, type SessionRequest } from './session.js';
