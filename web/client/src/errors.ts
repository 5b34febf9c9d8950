import type { Problem } from './protocol.js';

/**
 * The server refused the stream, with a status other than 200. A refusal is `fatal`
 * if the gateway itself says why, and another attempt would get the same answer: 401,
 * 403, 404 or 406 for example, but not 429 or 503, nor the page of a proxy.
 */
export class RefusedError extends Error {
  override readonly name: string = 'RefusedError';

  constructor(
    readonly status: number,
    /** The gateway's explanation (RFC 9457); undefined if the answer is not the gateway's. */
    readonly problem: Problem | undefined,
    /** From `Retry-After`: the earliest moment for another attempt, in ms from now. */
    readonly retryAfterMs: number | undefined,
    message = problem?.detail ?? `the server answered with status ${status}`,
    readonly fatal = problem !== undefined && status < 500 && status !== 408 && status !== 429,
  ) {
    super(message);
  }
}

/** @internal Returns the error for a refusal. */
export async function refusedBy(response: Response): Promise<RefusedError> {
  return new RefusedError(response.status, await problemOf(response), retryAfterMs(response.headers));
}

// Problems of the gateway have no type of their own, which is the same as about:blank, and
// repeat the status. The page, or the problem, of a proxy says nothing about the gateway.
async function problemOf(response: Response): Promise<Problem | undefined> {
  if (!response.headers.get('Content-Type')?.startsWith('application/problem+json')) return void response.body?.cancel().catch(() => {});
  const problem = (await response.json().catch(() => undefined)) as Partial<Problem> | null | undefined;
  const { type = 'about:blank', status, detail } = problem ?? {};
  return type === 'about:blank' && status === response.status && detail ? (problem as Problem) : undefined;
}

// Retry-After holds seconds, or a date (RFC 9110, 10.2.3), as of the server's clock, if it may be read: that of the page may be wrong.
function retryAfterMs(headers: Headers): number | undefined {
  const [header, date] = [headers.get('Retry-After'), headers.get('Date')];
  const ms = Number(header) * 1000 || Date.parse(header!) - (Date.parse(date!) || Date.now()); // not a number if there is no header
  return Math.max(0, ms) || undefined;
}

/** The response was 200, but not an event stream: there is no gateway at this URL, or a proxy answers in its place. */
export class NotAStreamError extends Error {
  override readonly name = 'NotAStreamError';

  constructor(
    url: string,
    readonly contentType: string,
  ) {
    super(`${url} answered with ${contentType || 'no content type'}: want the URL of a gateway`);
  }
}
