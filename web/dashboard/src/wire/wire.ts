import { refusal } from '../gateway/refusal';
import { ask } from '../gateway/session';
import { readFrame } from './frame';
import { Framer } from './framer';
import { Log, type LogContents, nothing } from './log';
import { headersOf, type StreamRequest, urlOf } from './request';

/** The state of a connection, and the frames that it received. */
export interface Connection {
  /**
   * `refused`: not accepted by the gateway; `ended`: closed by the gateway; `lost`:
   * broken off; `left`: disconnected by the user; `hidden`: disconnected because the
   * tab was hidden for too long.
   */
  readonly state: 'connecting' | 'open' | 'refused' | 'ended' | 'lost' | 'left' | 'hidden';
  /** When the state began, in ms as of Date.now. */
  readonly since: number;
  /** When the last byte arrived, in ms as of Date.now. */
  readonly aliveAt: number;
  /** The longest silence that the gateway promised, in ms; 0 before hello. */
  readonly heartbeatMs: number;
  /** `200 OK`; empty before the response. */
  readonly status: string;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** The reason why it was refused, or ended. */
  readonly reason: string;
  /** The newest position. */
  readonly position: string;
  readonly kept: LogContents;
}

// A browser opens at most six connections to an origin that speaks HTTP/1.1, for all
// tabs together, so a hidden tab gives its own up.
const hiddenMs = 30_000;

const idle: Connection = {
  state: 'left',
  since: 0,
  aliveAt: 0,
  heartbeatMs: 0,
  status: '',
  headers: [],
  reason: '',
  position: '',
  kept: nothing,
};

/**
 * A separate connection to the gateway, whose frames are kept as they were on the
 * wire. It does not reconnect by itself: how a stream ends is worth seeing.
 *
 * Listeners are called at most once per frame of the screen.
 */
export class Wire {
  #now = idle;
  #shown = idle; // #now at the last frame of the screen
  #log = new Log();
  #abort = new AbortController();
  #number = 0;
  #lastAt = 0;
  #goodbye = ''; // the reason in the gateway's goodbye
  #notified = true;
  #hiding: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();

  /** The connection at the last frame of the screen: the same object until something in it changes. */
  readonly connection = (): Connection => this.#shown;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Replaces the current connection by a new one. */
  connect(request: StreamRequest): void {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.clear();
    this.#goodbye = '';
    this.#become({ ...idle, state: 'connecting', since: Date.now() });
    document.addEventListener('visibilitychange', this.#visibility);
    this.#visibility();
    void this.#run(request, this.#abort.signal);
  }

  disconnect(): void {
    this.#leave('left', 'by you');
  }

  /** Forgets all frames and counts. */
  clear(): void {
    this.#log = new Log();
    this.#notify();
  }

  async #run(request: StreamRequest, signal: AbortSignal): Promise<void> {
    try {
      // The cache would store all of a stream that never ends.
      const response = await ask(urlOf(request), { headers: headersOf(request), signal, cache: 'no-store' });
      const status = `${response.status} ${response.statusText}`.trim();
      this.#become({ ...this.#now, status, headers: [...response.headers], aliveAt: Date.now() });
      if (response.status !== 200 || !response.body) return this.#end('refused', await refusal(response));
      this.#become({ ...this.#now, state: 'open', since: Date.now() });
      await this.#read(response.body, request.format, signal);
      this.#end('ended', `the gateway ended the stream${this.#goodbye && ` (${this.#goodbye})`}`);
    } catch (error) {
      if (!signal.aborted) this.#end('lost', error instanceof Error ? error.message : String(error));
    }
  }

  async #read(body: ReadableStream<Uint8Array>, format: StreamRequest['format'], signal: AbortSignal): Promise<void> {
    const framer = new Framer(format);
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    const reader = body.getReader();
    this.#lastAt = performance.now();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        signal.throwIfAborted();
        if (done) return;
        this.#become({ ...this.#now, aliveAt: Date.now() });
        for (const bytes of framer.push(value)) this.#take(bytes, decoder.decode(bytes), format);
      }
    } finally {
      for (const bytes of signal.aborted ? [] : framer.end()) this.#take(bytes, decoder.decode(bytes), 'cut');
    }
  }

  #take({ length: bytes }: Uint8Array, raw: string, format: StreamRequest['format'] | 'cut'): void {
    const at = performance.now();
    const { type, id } = format === 'cut' ? { type: 'cut', id: '' } : readFrame(raw, format);
    this.#log.add({ number: ++this.#number, type, id, raw, bytes, at, after: at - this.#lastAt });
    this.#lastAt = at;
    if (id) this.#now = { ...this.#now, position: id };
    if (type === 'hello') this.#now = { ...this.#now, heartbeatMs: Number(/"heartbeat_ms":(\d+)/.exec(raw)?.[1] ?? 0) };
    if (type === 'goodbye') this.#goodbye = /"reason":"(\w+)"/.exec(raw)?.[1] ?? '';
    this.#notify();
  }

  readonly #visibility = (): void => {
    clearTimeout(this.#hiding);
    if (document.hidden) this.#hiding = setTimeout(() => this.#leave('hidden', 'this tab was hidden for 30 s'), hiddenMs);
  };

  #leave(state: 'left' | 'hidden', reason: string): void {
    this.#abort.abort();
    if (this.#now.state === 'open' || this.#now.state === 'connecting') this.#end(state, reason);
  }

  #end(state: Connection['state'], reason: string): void {
    clearTimeout(this.#hiding);
    document.removeEventListener('visibilitychange', this.#visibility);
    this.#become({ ...this.#now, state, since: Date.now(), reason });
  }

  #become(now: Connection): void {
    this.#now = now;
    this.#notify();
  }

  #notify(): void {
    if (!this.#notified) return;
    this.#notified = false;
    requestAnimationFrame(() => {
      this.#notified = true;
      this.#shown = { ...this.#now, kept: this.#log.kept };
      for (const listener of this.#listeners) listener();
    });
  }
}
