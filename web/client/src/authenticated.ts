import { RefusedError } from './errors.js';
import type { Event } from './protocol.js';
import { anotherUser, bearer, beginSession, getSession, getTicket, renewStream, type SessionRequest } from './session.js';
import { limited } from './time_limit.js';
import { maxTimerMs } from './timer.js';
import { type AnswerRequest, fetchTransport, type Receiver, type StreamRequest, type Transport } from './transport.js';

export interface AuthenticatedOptions {
  /**
   * Returns a token. expired: the last one has expired, or is about to, so another one is
   * needed. Without getToken, the cookie of a session identifies the user.
   */
  readonly getToken?: (hint: { expired: boolean }) => string | Promise<string>;
  /**
   * Reads the streams; `fetch` unless set. For one that sends no headers, such as
   * `eventSourceTransport`, the token is exchanged for a session.
   */
  readonly transport?: Transport;
  /** Sends a ticket in the URL instead of using a session: for pages that get no cookies of the gateway. Needs getToken. */
  readonly tickets?: boolean;
  /** The tag of the session whose data is shown; that of the first connection unless set. */
  readonly tag?: string;
}

// How long before its end a token is replaced: the server begins to end its streams in
// the last half minute. The spread keeps pages whose tokens end together from renewing
// together. With a short token, a stream lasts at least for half of the time that is
// left, so the last two thirds of it are early enough.
const leadMs = 60_000;
const spreadMs = 30_000;
const leadOfRest = 2 / 3;

// The least time between two renewals of a stream: for a clock that is ahead, each token is about to end.
const minRenewalMs = 15_000;

/**
 * Reads streams as one user, and never passes on an event of another user's stream: if
 * another user is signed in by now, the stream is refused. A stream is renewed before its
 * token expires, if there is another token.
 */
export function authenticated({ transport = fetchTransport, getToken, tickets = false, tag }: AuthenticatedOptions = {}): Transport {
  if (tickets && !getToken) throw new Error('a ticket is made of a token: want getToken');
  const identity: Identity = { transport, getToken, tickets, tag, expired: false, token: '' };
  const authorized = (headers: AnswerRequest['headers']) => ({ ...headers, ...(identity.token && bearer(identity.token)) });
  return {
    hearsHeartbeat: transport.hearsHeartbeat,
    ...(transport.ask && { ask: (request) => transport.ask!({ ...request, headers: authorized(request.headers) }) }),
    ...(transport.post && { post: (request) => transport.post!({ ...request, headers: authorized(request.headers) }) }),
    read: (request, receiver) => new Reading(identity, request, receiver).read(),
  };
}

/** The state that all streams of a transport share. */
interface Identity {
  readonly transport: Transport;
  readonly getToken: AuthenticatedOptions['getToken'];
  readonly tickets: boolean;
  tag: string | undefined; // of the user; unknown before the first stream
  token: string; // the newest that a stream was read with
  expired: boolean; // the server has ended a stream because of its token
}

/** One stream, from its credential to its end. */
class Reading {
  readonly #base: string;
  readonly #ended = new AbortController();
  readonly #plain: SessionRequest;
  readonly #gate: Gate;
  #token = '';
  #stream = ''; // its id at the server
  #expires = 0; // when its credential expires
  #failure: unknown;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly identity: Identity,
    private readonly request: StreamRequest,
    receiver: Receiver,
  ) {
    const { url, headers, credentials } = request;
    this.#base = url.slice(0, url.lastIndexOf('/v1/events'));
    this.#plain = { headers, credentials, signal: this.#ended.signal };
    this.#gate = new Gate(receiver, (event) => this.#take(event));
  }

  async read(): Promise<void> {
    const { signal } = this.request;
    const abort = () => this.#ended.abort(signal.reason);
    signal.throwIfAborted();
    signal.addEventListener('abort', abort);
    try {
      await (this.identity.getToken ? this.#withToken() : this.#open());
    } finally {
      signal.removeEventListener('abort', abort);
      clearTimeout(this.#timer);
      abort();
    }
  }

  // A token that is refused may have expired without this page noticing.
  async #withToken(): Promise<void> {
    const { expired } = this.identity;
    this.identity.expired = false;
    const token = (this.#token = await this.#getToken(expired));
    try {
      await this.#open();
    } catch (error) {
      if (expired || this.#failure || !isUnauthorized(error)) throw error;
      this.#token = await this.#getToken(true);
      if (this.#token === token) throw error;
      await this.#open();
    }
  }

  #getToken(expired: boolean): Promise<string> {
    return limited('getToken', this.identity.getToken!({ expired }), this.#ended.signal);
  }

  async #open(): Promise<void> {
    const { transport, tickets } = this.identity;
    const token = (this.identity.token = this.#token);
    await this.#identify(token).catch((error) => {
      if (!this.#survives(error)) throw error;
    });
    if (this.#needsSession) await beginSession(this.#base, token, this.#plain);
    const url = this.request.url + (token && tickets ? `&ticket=${encodeURIComponent(await this.#ticket())}` : '');
    const headers = { ...this.request.headers, ...(token && transport.hearsHeartbeat && bearer(token)) };
    const byCookie = !token || this.#needsSession;
    const confirmed = byCookie ? this.#gate.begun.then(() => this.#confirm()) : this.#gate.open();
    await this.#read({ ...this.request, url, headers, signal: this.#ended.signal }, confirmed);
  }

  get #needsSession(): boolean {
    const { transport, tickets } = this.identity;
    return this.#token !== '' && !transport.hearsHeartbeat && !tickets;
  }

  // To an EventSource with an expired cookie the server says goodbye, without data: the
  // page may still renew its session.
  #survives(error: unknown): boolean {
    return !this.#token && !this.identity.transport.hearsHeartbeat && isUnauthorized(error) && !this.#failure;
  }

  #ticket(): Promise<string> {
    const { url } = this.request;
    return getTicket(this.#base, new URLSearchParams(url.slice(url.indexOf('?'))).getAll('watch'), {
      ...this.#plain,
      headers: this.#as(this.#token),
    });
  }

  #as(token: string): Record<string, string> {
    return { ...this.request.headers, ...(token && bearer(token)) };
  }

  // Events that are held back when the stream ends, such as a goodbye, are passed on first.
  async #read(request: StreamRequest, confirmed: Promise<void> | void): Promise<void> {
    let lost: unknown;
    try {
      await this.identity.transport.read(request, this.#gate);
    } catch (error) {
      lost = error;
    }
    if (this.#gate.holds && !this.#ended.signal.aborted) await confirmed;
    if (this.#failure ?? lost) throw this.#failure ?? lost;
  }

  // The cookie may have changed between the first check and the request. Nothing is
  // passed on until it is known whose stream this is.
  async #confirm(): Promise<void> {
    try {
      await this.#identify('');
      this.#gate.open();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#ended.abort(error);
  }

  // Asks whose the credential is, the token or else the cookie, and when it expires.
  async #identify(token: string): Promise<void> {
    const { tag, expires } = await getSession(this.#base, { ...this.#plain, headers: this.#as(token) });
    if ((this.identity.tag ??= tag) !== tag) throw (this.#failure = anotherUser());
    this.#expires = expires ? Date.parse(expires) : 0;
  }

  #take(event: Event & { stream?: string }): void {
    if (event.type === 'hello') {
      this.#stream = event.stream ?? '';
      this.#schedule();
    } else if (event.type === 'goodbye' && event.reason === 'token_expired') {
      this.identity.expired = true;
    }
  }

  #schedule(leastMs = 0): void {
    const rest = this.#expires - Date.now();
    if (!this.#token || !this.#stream || !(rest > 0) || this.#ended.signal.aborted) return;
    const wait = Math.max(leastMs, rest - Math.min(rest * leadOfRest, leadMs + Math.random() * spreadMs));
    this.#timer = setTimeout(() => (wait > maxTimerMs ? this.#schedule() : void this.#renew()), Math.min(wait, maxTimerMs));
  }

  // If there is no other token, or another replica answers, the server will say goodbye,
  // and the next stream resumes.
  async #renew(): Promise<void> {
    const before = this.#expires;
    try {
      const token = await this.#getToken(true);
      if (!token || token === this.#token) return;
      await this.#identify(token);
      if (this.#needsSession) await beginSession(this.#base, token, this.#plain);
      if (!(await renewStream(this.#base, this.#stream, token, this.#plain))) return;
      this.#token = this.identity.token = token;
      if (this.#expires > before) this.#schedule(minRenewalMs);
    } catch {
      if (this.#failure) this.#fail(this.#failure); // it is another user's token
    }
  }
}

/** Holds back a stream until it is known whose it is, and reads the events that concern the credential. */
class Gate implements Receiver {
  readonly begun: Promise<void>;
  #hasBegun = false;
  #begin!: () => void;
  #held: Array<() => void> | undefined = [];

  constructor(
    private readonly receiver: Receiver,
    private readonly look: (event: Event) => void,
  ) {
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  /** Whether events are held back. */
  get holds(): boolean {
    return this.#hasBegun && this.#held !== undefined;
  }

  open(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const pass of held) pass();
  }

  alive(): void {
    this.receiver.alive();
  }

  event(data: string): void {
    const first = !this.#hasBegun;
    this.#hasBegun = true;
    if (first || data.includes('"goodbye"')) {
      const event = JSON.parse(data) as Event;
      this.look(event);
      if (first && event.type === 'goodbye')
        this.open(); // there is no data to hold back
      else if (first) this.#begin();
    }
    this.#pass(() => this.receiver.event(data));
  }

  id(id: string): void {
    this.#pass(() => this.receiver.id(id));
  }

  retry(ms: number): void {
    this.#pass(() => this.receiver.retry(ms));
  }

  flush(): void {
    this.#pass(() => this.receiver.flush());
  }

  #pass(pass: () => void): void {
    this.#held ? this.#held.push(pass) : pass();
  }
}

const isUnauthorized = (error: unknown): boolean => error instanceof RefusedError && error.status === 401;
