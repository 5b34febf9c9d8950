import { RefusedError, refusedBy } from './errors.js';

/** As whom the gateway sees this client. */
export interface Session {
  /** Empty without a credential. */
  readonly name: string;
  readonly issuer: string;
  /** `anonymous` without a credential. */
  readonly mechanism: string;
  /** Names the user, and says nothing else: the same for the same user, whatever the credential. Empty without one. */
  readonly tag: string;
  /** When the credential ends, as in RFC 3339; missing if it does not. */
  readonly expires?: string;
}

/** How a request about a session is sent. */
export interface SessionRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** As in `fetch`; `include` for the cookie of another origin. `same-origin` unless set. */
  readonly credentials?: RequestCredentials;
  readonly signal?: AbortSignal;
}

const nobody: Session = { name: '', issuer: '', mechanism: 'anonymous', tag: '' };

/** Asks the gateway at url as whom it sees this client. A gateway that knows no sessions sees nobody. */
export async function getSession(url: string | URL, request: SessionRequest = {}): Promise<Session> {
  const response = await ask('GET', at(url, 'session'), request);
  if (response.status === 404) return nobody;
  return { ...nobody, ...await (await granted(response)).json() as Partial<Session> };
}

/** Turns a token into the cookie of a session, which the page itself cannot read. */
export async function beginSession(url: string | URL, token: string, { headers, ...request }: SessionRequest = {}): Promise<void> {
  await granted(await ask('POST', at(url, 'session'), { ...request, headers: { ...headers, ...bearer(token) } }));
}

/** Ends the session, and all streams that it has opened, in other tabs too. */
export async function endSession(url: string | URL, request: SessionRequest = {}): Promise<void> {
  await granted(await ask('DELETE', at(url, 'session'), request));
}

/** Gets a ticket, which opens streams of the watches without a header or a cookie. */
export async function getTicket(url: string | URL, watches: readonly string[], { headers, ...request }: SessionRequest = {}): Promise<string> {
  const json = { 'Content-Type': 'application/json' };
  const response = await granted(await ask('POST', at(url, 'tickets'), { ...request, headers: { ...headers, ...json } }, JSON.stringify({ watches })));
  return (await response.json() as { ticket: string }).ticket;
}

/** Lets an open stream last as long as another token of the same user; false: the stream is not known there, or not the user's. */
export async function renewStream(url: string | URL, stream: string, token: string, { headers, ...request }: SessionRequest = {}): Promise<boolean> {
  const path = `streams/${encodeURIComponent(stream)}`;
  return (await ask('PUT', at(url, path), { ...request, headers: { ...headers, ...bearer(token) } })).ok;
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

const at = (url: string | URL, path: string) => `${String(url).replace(/\/$/, '')}/v1/${path}`;

// A session must be known before a stream is opened, so a request must not last forever.
const timeoutMs = 10_000;

async function ask(method: string, url: string, { headers = {}, credentials = 'same-origin', signal }: SessionRequest, body?: string): Promise<Response> {
  const late = new AbortController();
  const abort = () => late.abort(signal?.reason);
  signal?.throwIfAborted();
  signal?.addEventListener('abort', abort);
  const timer = setTimeout(() => late.abort(new Error(`no answer from ${url} for ${timeoutMs / 1000} s`)), timeoutMs);
  try {
    // A redirect could take the token to another server.
    return await fetch(url, { method, headers, credentials, signal: late.signal, cache: 'no-store', redirect: 'error', ...(body && { body }) });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

async function granted(response: Response): Promise<Response> {
  if (!response.ok) throw await refusedBy(response);
  return response;
}

/** The refusal when another user is signed in than the one whose data is shown. */
export const anotherUser = (): RefusedError => new RefusedError(401, {
  type: 'about:blank', title: 'Another user', status: 401, detail: 'another user is signed in now: load the page again',
}, undefined);
