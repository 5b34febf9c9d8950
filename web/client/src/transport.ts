import { NotAStreamError, refusedBy } from './errors.js';
import { fetchOnce, otherOrigin } from './fetch_once.js';
import type { RawSnapshot } from './initial_snapshots.js';
import { parser, type SSEHandler } from './sse.js';
import { Turns } from './turns.js';

/** One request for a stream. */
export interface StreamRequest {
  readonly url: string;
  /** The position to resume from; empty for none. */
  readonly lastEventId: string;
  /** Further headers, `Authorization` among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly credentials: RequestCredentials;
  /** @internal Returns the URL by now, in which windows are where they have been moved to: for a stream that begins again. */
  readonly current?: () => string;
  /** @internal What the stores began with, for a hub that has nothing yet. */
  readonly snapshots?: readonly RawSnapshot[];
  /** Ends the stream; the transport then no longer calls the receiver. The reason may be `replaced`: another one follows at once. */
  readonly signal: AbortSignal;
}

/** The reason why a stream ends whose place another one takes. */
export const replaced = 'replaced';

/** A request for one answer, with the headers and the credentials of a stream. */
export type AnswerRequest = Pick<StreamRequest, 'url' | 'headers' | 'credentials' | 'signal'>;

/** Called by a transport, in the order of the stream. */
export interface Receiver extends SSEHandler {
  /** Something arrived, even if only a comment. */
  alive(): void;
  /** Everything that arrived together has been passed on. */
  flush(): void;
}

/** A way to read a stream. */
export interface Transport {
  /** Whether it notices the server's heartbeat, so that silence means a dead connection. */
  readonly hearsHeartbeat: boolean;
  /** Called with the time until the next stream, in ms, when one was lost. */
  waits?(ms: number): void;
  /** Throws if it cannot send headers, such as that of a token. */
  checkHeaders?(): void;
  /** Tells whoever holds the connection, if that is not the transport's user, that an attempt is more likely to succeed now. */
  hurry?(): void;
  /** @internal A stream may follow soon: what is kept from the last one is kept until the returned function is called. */
  hold?(): () => void;
  /** Makes a request for one answer, as the user whose streams it reads. Without it, its streams have no digests. */
  ask?(request: AnswerRequest): Promise<Response>;
  /** Makes a request with POST, as the user whose streams it reads. Without it, a window that moves takes another stream. */
  post?(request: AnswerRequest): Promise<Response>;
  /** Reads one stream: resolves at its end, rejects if it is refused or lost. */
  read(request: StreamRequest, receiver: Receiver): Promise<void>;
}

export const postOnce = ({ url, ...request }: AnswerRequest): Promise<Response> => fetchOnce(url, { method: 'POST', ...request });

/** Reads streams with `fetch`: it can send headers, and sees status codes and comments. */
export const fetchTransport: Transport = {
  hearsHeartbeat: true,
  ask: ({ url, ...request }) => fetchOnce(url, request),
  post: postOnce,
  async read(request, receiver) {
    const { url, credentials, signal } = request;
    const response = await fetchOnce(url, { headers: headersOf(request), credentials, signal });
    receiver.alive();
    await pump(await bodyOf(response, url), receiver, signal);
  },
};

const headersOf = ({ url, lastEventId, headers }: StreamRequest): Record<string, string> => ({
  Accept: '*/*', // so that a refusal is a problem that says which watch it concerns, not a goodbye
  // Asks proxies not to wait for the end of a message (RFC 10036). The answer has it too; to another origin it would cost a preflight.
  ...(!otherOrigin(url) && { Incremental: '?1' }),
  ...(lastEventId && { 'Last-Event-ID': lastEventId }),
  ...headers,
});

async function bodyOf(response: Response, url: string): Promise<ReadableStream<Uint8Array>> {
  const type = response.headers.get('Content-Type') ?? '';
  if (response.status !== 200) throw await refusedBy(response);
  if (!response.body || !type.startsWith('text/event-stream')) throw new NotAStreamError(url, type);
  return response.body;
}

async function pump(body: ReadableStream<Uint8Array>, receiver: Receiver, signal: AbortSignal): Promise<void> {
  const parse = parser(receiver);
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const turns = new Turns();
  try {
    for (;;) {
      const { done, value } = await turns.after(reader.read());
      if (done || signal.aborted) return;
      receiver.alive();
      parse(decoder.decode(value, { stream: true }), value);
      receiver.flush();
    }
  } finally {
    reader.cancel().catch(() => {}); // an event that cannot be read must not leave the connection open
  }
}
