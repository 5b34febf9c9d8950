import { vi } from 'vitest';

/** Responds to every fetch with a stream that the test writes. */
export class FakeStream {
  readonly asked: Array<{ url: URL; headers: Headers }> = [];
  signal: AbortSignal | undefined;
  #body!: ReadableStreamDefaultController<Uint8Array>;
  /** Replaces the response, if it is set. */
  answer: Response | undefined;

  readonly fetch = async (url: URL | string, { headers, signal }: RequestInit = {}): Promise<Response> => {
    if (String(url).endsWith('/v1/watches')) return new Response('{"watches":[]}');
    this.asked.push({ url: new URL(url), headers: new Headers(headers) });
    this.signal = signal ?? undefined;
    if (this.answer) return this.answer;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
      },
    });
    signal?.addEventListener('abort', () => this.#body.error(signal.reason));
    return new Response(body, { status: 200, statusText: 'OK', headers: { 'content-type': 'text/event-stream' } });
  };

  async write(text: string): Promise<void> {
    this.#body.enqueue(new TextEncoder().encode(text));
    await frames();
  }

  async end(): Promise<void> {
    this.#body.close();
    await frames();
  }

  async break(message: string): Promise<void> {
    this.#body.error(new TypeError(message));
    await frames();
  }
}

/** Passes the next frames of the screen. Needs fake time. */
export const frames = () => vi.advanceTimersByTimeAsync(50);

export const upsert = (key: string, more = '') =>
  `event: upsert\ndata: {"type":"upsert","watch":"notes","key":"${key}","revision":"7","value":1}\n${more}\n`;
export const hello = 'event: hello\ndata: {"type":"hello","heartbeat_ms":15000,"watches":[{"watch":"notes","mode":"snapshot"}]}\n\n';
