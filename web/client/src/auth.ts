export { type AuthenticatedOptions, authenticated } from './authenticated.js';
export { onLogout } from './logout.js';
export { beginSession, endSession, getSession, type Session, type SessionRequest } from './session.js';
