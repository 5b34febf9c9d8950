import { RefusedError } from './errors.js';
import { attempt } from './listeners.js';
import type { Event } from './protocol.js';
import { fetchTransport, type Receiver, type StreamRequest, type Transport } from './transport.js';

/** What happened to a stream, for debugging. */
export type LogEvent =
  /** A request is made; `position` is where it resumes, and is empty without one. */
  | { readonly type: 'connecting'; readonly url: string; readonly position: string }
  /** The first event arrived, `afterMs` after the request. */
  | { readonly type: 'connected'; readonly afterMs: number; readonly instance: string | undefined }
  /** A snapshot follows, and why. */
  | { readonly type: 'reset'; readonly watch: string; readonly reason: string }
  /** The server ends the stream, and wants the client back in `retryMs`. */
  | { readonly type: 'goodbye'; readonly reason: string; readonly retryMs: number }
  /** The server refused the stream, and wants the client back in `retryMs`, if it says so. */
  | { readonly type: 'refused'; readonly status: number; readonly reason: string; readonly retryMs: number | undefined }
  /** The stream ended, `afterMs` after the request. */
  | { readonly type: 'lost'; readonly reason: string; readonly afterMs: number }
  /** The client ended the stream: it needs other watches or another rate, is closed, or the page was hidden. */
  | { readonly type: 'ended'; readonly reason: string; readonly afterMs: number }
  /** The client waits for so long before its next request, unless it is told to hurry. */
  | { readonly type: 'retry'; readonly inMs: number };

/**
 * Returns a transport that reads streams as another one does, with `fetch` unless set, and reports what
 * happens: `watch('/', { transport: logged(console.debug) })`. A page that does not use it does not load it.
 */
export function logged(log: (event: LogEvent) => void, transport: Transport = fetchTransport): Transport {
  const tell = (event: LogEvent) => attempt(() => log(event));
  return {
    hearsHeartbeat: transport.hearsHeartbeat,
    checkHeaders: () => transport.checkHeaders?.(),
    hurry: () => transport.hurry?.(),
    ...(transport.ask && { ask: (request) => transport.ask!(request) }),
    ...(transport.post && { post: (request) => transport.post!(request) }),
    waits: (inMs) => {
      tell({ type: 'retry', inMs });
      transport.waits?.(inMs);
    },
    read: (request, receiver) => read(tell, transport, request, receiver),
  };
}

async function read(log: (event: LogEvent) => void, transport: Transport, request: StreamRequest, receiver: Receiver): Promise<void> {
  const from = Date.now();
  const { url, lastEventId: position, signal } = request;
  const passed = () => Date.now() - from;
  // Its methods may be those of a class.
  const heard: Receiver = {
    alive: () => receiver.alive(),
    event: (data) => report(log, data, passed, receiver),
    id: (id) => receiver.id(id),
    retry: (ms) => receiver.retry(ms),
    flush: () => receiver.flush(),
  };
  log({ type: 'connecting', url, position });
  try {
    await transport.read(request, heard);
    log({ type: 'lost', reason: 'the stream ended', afterMs: passed() });
  } catch (error) {
    log(signal.aborted ? { type: 'ended', reason: reasonOf(signal.reason), afterMs: passed() } : failure(error, passed()));
    throw error;
  }
}

// Most events are of other types, and are not parsed twice.
const reported = /"type"\s*:\s*"(?:hello|reset|goodbye)"/;

function report(log: (event: LogEvent) => void, data: string, passed: () => number, receiver: Receiver): void {
  if (reported.test(data.slice(0, 200))) {
    const event = JSON.parse(data) as Event;
    if (event.type === 'hello') log({ type: 'connected', afterMs: passed(), instance: event.instance });
    if (event.type === 'reset') log({ type: 'reset', watch: event.watch, reason: event.reason });
    if (event.type === 'goodbye') log({ type: 'goodbye', reason: event.reason, retryMs: event.retry_ms });
  }
  receiver.event(data);
}

function failure(error: unknown, afterMs: number): LogEvent {
  if (!(error instanceof RefusedError)) return { type: 'lost', reason: reasonOf(error), afterMs };
  return { type: 'refused', status: error.status, reason: error.message, retryMs: error.retryAfterMs };
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
