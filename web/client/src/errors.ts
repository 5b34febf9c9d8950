import type { Problem } from './protocol.js';

/**
 * The server refused the stream, with a status other than 200. A refusal is `fatal`
 * if another attempt would get the same answer: 401, 403, 404 or 406 for example, but
 * not 429 or 503.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';

  constructor(
    readonly status: number,
    /** The server's explanation (RFC 9457), if there is one. */
    readonly problem: Problem | undefined,
    /** From `Retry-After`: the earliest moment for another attempt, in ms from now. */
    readonly retryAfterMs: number | undefined,
    message = problem?.detail ?? `the server answered with status ${status}`,
  ) {
    super(message);
  }

  get fatal(): boolean {
    return this.status < 500 && this.status !== 408 && this.status !== 429;
  }
}

/** @internal Returns the error for a refusal. */
export async function refusedBy(response: Response): Promise<RefusedError> {
  const problem = await response.json().catch(() => undefined) as Problem | undefined;
  return new RefusedError(response.status, problem, retryAfterMs(response.headers.get('Retry-After')));
}

// Retry-After holds seconds, or a date (RFC 9110, 10.2.3).
function retryAfterMs(header: string | null): number | undefined {
  const ms = Number(header) * 1000 || Date.parse(header!) - Date.now(); // not a number if there is no header
  return isNaN(ms) ? undefined : Math.max(0, ms);
}

/** The response was 200, but not an event stream: there is no gateway at this URL. */
export class NotAStreamError extends Error {
  override readonly name = 'NotAStreamError';
  readonly fatal = true;

  constructor(url: string, readonly contentType: string) {
    super(`${url} answered with ${contentType || 'no content type'}: want the URL of a gateway`);
  }
}

/** Errors after which the client does not reconnect by itself. */
export type FatalError = RefusedError | NotAStreamError;

export const isFatal = (error: unknown): error is FatalError =>
  (error instanceof RefusedError || error instanceof NotAStreamError) && error.fatal;
