import { RefusedError, refusedBy } from './errors.js';
import { canonical, type Definition, parametersOf } from './spec.js';
import type { Moving, Store } from './store.js';
import { limited } from './time_limit.js';
import { timer } from './timer.js';
import type { Watches } from './watch.js';

// The time until a move is asked for again that was too much for the gateway, unless it says so itself. It doubles.
const waitMs = 1_000;
const maxWaitMs = 30_000;

// After so many failures in a row moves take another stream for some time: behind a load balancer, most requests may get to
// another replica than the stream.
const maxFailures = 3;
const restMs = 60_000;

/**
 * Moves the window of a store on its stream, to where it is wanted last: one request after the other, and the next one when
 * the rows of the last one are there. If that is not possible, or nobody knows whether it was done, another stream
 * takes the place of this one, and asks for the window that is wanted. Definitions are those of requests.
 */
export class Mover implements Moving {
  #parameters = ''; // of the request that moves the window to where it is wanted
  #requested: string; // what the newest request asked for
  #streamed: string; // what the stream has, or will have with the move #number; empty: unknown
  #shown: string;
  #number = 0;
  #asked: { readonly query: string; readonly moved: number } | undefined; // the newest move, which may have been done
  #asking: AbortController | undefined;
  #refused = false; // this stream cannot be moved
  #failures = 0;
  #restsUntil = -Infinity;
  #waits = 0; // in a row
  #timer: ReturnType<typeof setTimeout> | undefined;
  #scheduled = false;
  #ended = false;

  /** changed is called when `moving` may have changed. */
  constructor(
    private readonly watches: Watches,
    private readonly store: Store,
    private readonly changed: () => void = () => {},
  ) {
    this.#requested = this.#streamed = this.#shown = store.query;
    store.moving = this;
  }

  get moving(): boolean {
    return this.#current !== this.store.query;
  }

  /** Moves the window. The options differ in its place and its limit only. */
  move(options: { readonly watch: string } & Definition): void {
    const { watch, limit, offset, after } = options;
    const place = { ...(limit && { limit }), ...(offset && { offset }), ...(after && { after }) };
    this.#parameters = `${new URLSearchParams([['watch', watch], ...parametersOf(place)])}`;
    this.store.query = canonical(options).query;
    this.store.apart = true;
    this.#soon();
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.store.moving = undefined;
  }

  requested(): void {
    this.#requested = this.store.query;
    this.#timer = void clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#asking = undefined;
    this.#refused = false;
  }

  begun(): void {
    this.#streamed = this.#requested;
    this.#asked = undefined;
    this.#number = 0;
  }

  published(): void {
    this.#shown = this.#current;
    if (this.#asked && this.store.moved > this.#asked.moved) this.#accepted(this.#asked.query, this.#number);
    this.#soon();
    this.changed();
  }

  // What the stream has. The rows may come before the answer, or without it.
  get #has(): string {
    const { moved } = this.store;
    return this.#asked && moved > this.#asked.moved ? this.#asked.query : this.#streamed;
  }

  // What is shown, or will be with what has arrived.
  get #current(): string {
    const { moved, inconsistent } = this.store;
    return !inconsistent && moved >= this.#number ? this.#has : this.#shown;
  }

  // Moves in one task are one.
  #soon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      if (!this.#ended) this.#go();
    });
  }

  #go(): void {
    const { store, watches } = this;
    if (!this.moving) {
      if (store.apart) store.apart = watches.find(store) !== undefined;
      return;
    }
    const connection = watches.connectionOf(store);
    // Without a stream, the next one asks for what is wanted.
    if (!connection?.open || store.inconsistent || this.#asking || this.#timer) return;
    if (this.#has === store.query || store.moved < this.#number) return; // the rows are on their way
    const rests = this.#refused || performance.now() < this.#restsUntil;
    const answer = rests ? undefined : connection.move(this.#parameters);
    if (answer) void this.#ask(answer);
    else connection.replace();
  }

  async #ask(answer: Promise<Response>): Promise<void> {
    const { query, moved } = this.store;
    const { signal } = (this.#asking = new AbortController());
    this.#asked = { query, moved };
    const [number, error] = await limited('the gateway', numberOf(answer), signal).then(
      (number) => [number] as const,
      (error: unknown) => [0, error] as const,
    );
    if (signal.aborted) return; // the next stream is on its way
    this.#asking = undefined;
    if (number) this.#accepted(query, number);
    else if (error instanceof RefusedError && (error.status === 429 || error.status === 503)) this.#wait(error);
    else this.#fail(error);
    this.published();
  }

  #accepted(query: string, number: number): void {
    this.#streamed = query;
    this.#number = number;
    this.#failures = this.#waits = 0;
    this.#refused = false;
  }

  #wait({ retryAfterMs }: RefusedError): void {
    this.#asked = undefined;
    const wait = retryAfterMs ?? Math.min(waitMs * 2 ** this.#waits++, maxWaitMs);
    this.#timer = timer(() => {
      this.#timer = undefined;
      this.#soon();
    }, wait);
  }

  // Without an answer it may have been done all the same.
  #fail(error: unknown): void {
    if (this.#has === this.#asked?.query) return;
    if (error instanceof RefusedError) this.#asked = undefined;
    else this.#streamed = '';
    this.#refused = true;
    if (++this.#failures >= maxFailures) this.#restsUntil = performance.now() + restMs;
  }
}

async function numberOf(answer: Promise<Response>): Promise<number> {
  const response = await answer;
  if (!response.ok) throw await refusedBy(response);
  const number = Number(((await response.json()) as { move?: unknown } | null)?.move);
  if (!(number > 0)) throw new Error(`${response.url} does not answer as a gateway does`);
  return number;
}
