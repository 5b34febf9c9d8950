import { RefusedError, refusedBy } from './errors.js';
import { fetchOnce } from './fetch_once.js';
import { announceLogout } from './logout.js';

/** The user that the gateway sees. */
export interface Session {
  /** Empty without a credential. */
  readonly name: string;
  readonly issuer: string;
  /** `anonymous` without a credential. */
  readonly mechanism: string;
  /** Identifies the user without revealing anything: it is the same for all credentials of a user. Empty without one. */
  readonly tag: string;
  /** When the credential expires, as in RFC 3339; missing if it does not. */
  readonly expires?: string;
}

/** Options for requests about sessions. */
export interface SessionRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** As in `fetch`; `include` for the cookie of another origin. `same-origin` unless set. */
  readonly credentials?: RequestCredentials;
  readonly signal?: AbortSignal;
}

const nobody: Session = { name: '', issuer: '', mechanism: 'anonymous', tag: '' };

/** Asks the gateway at url which user it sees. A gateway without sessions sees nobody; an answer that is not a gateway's is an error. */
export async function getSession(url: string | URL, request: SessionRequest = {}): Promise<Session> {
  return (await findSession(url, request)) ?? nobody;
}

/** Like getSession, but returns undefined for a gateway without sessions. */
export async function findSession(url: string | URL, request: SessionRequest = {}): Promise<Session | undefined> {
  const session = await ask('GET', at(url, 'session'), request, async (response) => {
    if (response.ok) return (await response.json()) as Partial<Session> | null;
    const refusal = await refusedBy(response);
    if (refusal.status === 404 && refusal.fatal) return undefined;
    throw refusal;
  });
  if (session === undefined) return undefined;
  if (!session?.mechanism) throw new Error(`${url} does not answer as a gateway does`);
  return { ...nobody, ...session };
}

/** Exchanges a token for the cookie of a session, which the page itself cannot read. */
export async function beginSession(url: string | URL, token: string, { headers, ...request }: SessionRequest = {}): Promise<void> {
  await ask('POST', at(url, 'session'), { ...request, headers: { ...headers, ...bearer(token) } }, granted);
}

/** Ends the session, and all streams that it has opened, in other tabs too. What tabs share of its data is erased. */
export async function endSession(url: string | URL, request: SessionRequest = {}): Promise<void> {
  await ask('DELETE', at(url, 'session'), request, granted);
  announceLogout(url);
}

/** Gets a ticket, which opens streams of the watches without headers or cookies. */
export async function getTicket(
  url: string | URL,
  watches: readonly string[],
  { headers, ...request }: SessionRequest = {},
): Promise<string> {
  const json = { 'Content-Type': 'application/json' };
  const read = async (response: Response) => ((await (await granted(response)).json()) as { ticket: string }).ticket;
  return ask('POST', at(url, 'tickets'), { ...request, headers: { ...headers, ...json } }, read, JSON.stringify({ watches }));
}

/** Extends an open stream to the end of another token of the same user; false: that replica does not have the stream, or it is not the user's. */
export async function renewStream(
  url: string | URL,
  stream: string,
  token: string,
  { headers, ...request }: SessionRequest = {},
): Promise<boolean> {
  const path = `streams/${encodeURIComponent(stream)}`;
  return ask('PUT', at(url, path), { ...request, headers: { ...headers, ...bearer(token) } }, async ({ ok }) => ok);
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

const at = (url: string | URL, path: string) => `${String(url).replace(/\/$/, '')}/v1/${path}`;

// A stream is opened only once the session is known, so a request must not last forever.
const timeoutMs = 10_000;

// The time and the signal are for the whole answer, which read reads.
async function ask<T>(
  method: string,
  url: string,
  { headers = {}, credentials = 'same-origin', signal }: SessionRequest,
  read: (response: Response) => Promise<T>,
  body?: string,
): Promise<T> {
  const late = new AbortController();
  const abort = () => late.abort(signal?.reason);
  signal?.throwIfAborted();
  signal?.addEventListener('abort', abort);
  const timer = setTimeout(() => late.abort(new Error(`no answer from ${url} for ${timeoutMs / 1000} s`)), timeoutMs);
  try {
    const aborted = new Promise<never>((_, reject) => late.signal.addEventListener('abort', () => reject(late.signal.reason)));
    const answer = fetchOnce(url, { method, headers, credentials, signal: late.signal, ...(body && { body }) }).then(read);
    return await Promise.race([answer, aborted]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}

async function granted(response: Response): Promise<Response> {
  if (!response.ok) throw await refusedBy(response);
  return response;
}

/** The refusal if another user is signed in than the one whose data is shown. */
export const anotherUser = (): RefusedError =>
  new RefusedError(
    401,
    {
      type: 'about:blank',
      title: 'Another user',
      status: 401,
      detail: 'another user is signed in now: load the page again',
    },
    undefined,
  );
