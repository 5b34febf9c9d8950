import { vi } from 'vitest';

/** A request of the client, and the server's side of the response. */
export class Exchange {
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** What the stream asks for: `digest=1&resume=digest`. It is not in the URL, since most tests are about other things. */
  readonly digests: string;
  readonly #resolve: (response: Response) => void;
  readonly #reject: (error: Error) => void;
  /** The client has the answer, or its beginning. */
  answered = false;

  constructor(
    readonly url: URL,
    readonly headers: Headers,
    readonly signal: AbortSignal,
    settle: [(r: Response) => void, (e: Error) => void],
  ) {
    const [resolve, reject] = settle;
    this.#resolve = (response) => {
      this.answered = true;
      resolve(response);
    };
    this.#reject = reject;
    this.digests = (/digest=1(&resume=digest)?$/.exec(url.search) ?? [''])[0];
    url.search = url.search.replace(/&digest=1(&resume=digest)?$/, '');
    signal.addEventListener('abort', () => {
      this.#reject(signal.reason);
      try {
        this.#controller?.error(signal.reason);
      } catch {
        /* it has ended already */
      }
    });
  }

  get watches(): string[] {
    return this.url.searchParams.getAll('watch');
  }

  get lastEventId(): string | null {
    return this.headers.get('Last-Event-ID');
  }

  get open(): boolean {
    return this.#controller !== undefined && !this.signal.aborted;
  }

  accept(text = ''): this {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
    });
    this.#resolve(new Response(body, { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } }));
    if (text) this.send(text);
    return this;
  }

  refuse(
    status: number,
    headers: Record<string, string> = {},
    problem: object = { status, title: 'No', detail: `refused with ${status}` },
  ): void {
    this.#resolve(new Response(JSON.stringify(problem), { status, headers: { 'Content-Type': 'application/problem+json', ...headers } }));
  }

  answer(response: Response): void {
    this.#resolve(response);
  }

  fail(message = 'connection refused'): void {
    this.#reject(new TypeError(message));
  }

  send(text: string | Uint8Array): void {
    this.#controller.enqueue(typeof text === 'string' ? new TextEncoder().encode(text) : text);
  }

  end(): void {
    this.#controller.close();
  }

  cut(): void {
    this.#controller.error(new TypeError('terminated'));
  }
}

const noSessions = () =>
  new Response(JSON.stringify({ type: 'about:blank', title: 'Not Found', status: 404, detail: 'there are no sessions' }), {
    status: 404,
    headers: { 'Content-Type': 'application/problem+json' },
  });

/** Replaces `fetch`, and keeps the requests. It has no sessions. */
export class Server {
  readonly exchanges: Exchange[] = [];

  constructor() {
    vi.stubGlobal(
      'fetch',
      (url: string, init: RequestInit) =>
        new Promise<Response>((resolve, reject) => {
          if (url.endsWith('/v1/session')) return resolve(noSessions());
          this.exchanges.push(new Exchange(new URL(url), new Headers(init.headers), init.signal as AbortSignal, [resolve, reject]));
        }),
    );
  }

  /** The newest request for a stream. */
  get stream(): Exchange {
    return this.exchanges.findLast(({ url }) => url.pathname.endsWith('/v1/events'))!;
  }

  get last(): Exchange {
    const last = this.exchanges.at(-1);
    if (!last) throw new Error('nothing was asked yet');
    return last;
  }
}

/** Advances the clock by this much, and runs everything that is due. */
export const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

/** An event in its wire format. */
export const wire = (event: { type: string }, id?: string): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n${id === undefined ? '' : `id: ${id}\n`}\n`;

export const hello = (watches: string[], mode = 'snapshot', heartbeat_ms = 15_000): string =>
  wire({ type: 'hello', heartbeat_ms, watches: watches.map((watch) => ({ watch, mode })) } as never);

export const reset = (watch: string, id: string, reason = 'initial'): string => wire({ type: 'reset', watch, reason } as never, id);

export const upsert = (watch: string, key: string, revision: number, value: unknown, id?: string): string =>
  wire({ type: 'upsert', watch, key, revision: String(revision), value } as never, id);

export const remove = (watch: string, key: string, revision: number, id?: string): string =>
  wire({ type: 'delete', watch, key, revision: String(revision) } as never, id);

export const endOfSnapshot = (watch: string, revision: number, count: number, id?: string, resumed = false): string =>
  wire({ type: 'end_of_snapshot', watch, revision: String(revision), count, ...(resumed && { resumed }) } as never, id);

export const status = (watch: string, state: string, reason?: string, id?: string): string =>
  wire({ type: 'status', watch, state, since: new Date().toISOString(), ...(reason && { reason }) } as never, id);

export const bookmark = (watch: string, revision: number, id?: string): string =>
  wire({ type: 'bookmark', watch, revision: String(revision) } as never, id);

export const goodbye = (reason: string, retry_ms: number): string => wire({ type: 'goodbye', reason, retry_ms } as never);

/** A whole snapshot of one resource. */
export const snapshot = (watch: string, value: unknown = 1): string =>
  hello([watch]) + reset(watch, `${watch}@e-0/5`) + upsert(watch, 'a', 5, value) + endOfSnapshot(watch, 5, 1, `${watch}@e-5`);
