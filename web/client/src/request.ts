import { RefusedError, refusedBy } from './errors.js';
import { fetchOnce } from './fetch_once.js';
import { limited } from './time_limit.js';
import { timer } from './timer.js';

export interface RequesterOptions {
  /** Returns the token to send as `Authorization: Bearer`. After a 401 it is asked once more, with `expired`. */
  readonly getToken?: (asked: { expired: boolean }) => string | undefined | Promise<string | undefined>;
  /** Additional headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** As in `fetch`; `include` for cookies to another origin. `same-origin` unless set. */
  readonly credentials?: RequestCredentials;
  /** The longest time from a request to the end of its answer, in ms; 30 s unless set. */
  readonly timeoutMs?: number;
}

/** One request: what differs from the others. */
export interface Request {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal | undefined;
}

/** Sends requests, and returns the texts of the answers. A refusal is a `RefusedError`. */
export class Requester {
  constructor(private readonly options: RequesterOptions) {}

  async send(request: Request): Promise<string> {
    request.signal?.throwIfAborted();
    const ended = new AbortController();
    const abort = () => ended.abort(request.signal!.reason);
    const { timeoutMs = 30_000 } = this.options;
    const late = () => ended.abort(new Error(`${request.url} did not answer for ${timeoutMs / 1000} s`));
    const ending = timer(late, timeoutMs);
    request.signal?.addEventListener('abort', abort);
    try {
      return await this.#authorized(request, ended.signal);
    } finally {
      clearTimeout(ending);
      request.signal?.removeEventListener('abort', abort);
    }
  }

  async #authorized(request: Request, signal: AbortSignal): Promise<string> {
    try {
      return await this.#once(request, signal, false);
    } catch (error) {
      if (!this.options.getToken || !(error instanceof RefusedError) || error.status !== 401) throw error;
      return this.#once(request, signal, true);
    }
  }

  async #once({ method, url, headers, body }: Request, signal: AbortSignal, expired: boolean): Promise<string> {
    const { getToken, credentials = 'same-origin' } = this.options;
    const token = getToken && (await limited('getToken', getToken({ expired }), signal));
    const all = { ...this.options.headers, ...headers, ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await fetchOnce(url, { method, headers: all, credentials, signal, ...(body !== undefined && { body }) });
    if (!response.ok) throw await refusedBy(response);
    return response.text();
  }
}
