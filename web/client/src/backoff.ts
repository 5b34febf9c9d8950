const baseMs = 1_000;
const capMs = 30_000;
const usedMs = 1_000;

/** A stream that lasts longer is healthy. */
export const healthyMs = 60_000;

/** How a connection ended. */
export interface ConnectionEnd {
  /** Since its `hello`; 0 if it had none. */
  readonly lastedMs: number;
  /** The reason of its `goodbye`, if it had one. */
  readonly goodbye: string | undefined;
  /** The time after which the server wants the client back; 0 if it named none. */
  readonly askedMs: number;
}

/**
 * The time to wait before the next attempt: with full jitter, so that the clients of
 * a server that failed do not all come back at once, and never less than the server
 * asked for. After a goodbye that moves the client elsewhere it is exactly that, since
 * the server spreads it already.
 */
export class Backoff {
  #failures = 0;

  /** A connection has ended. Returns the wait, in ms. */
  ended({ lastedMs, goodbye, askedMs }: ConnectionEnd): number {
    // A goodbye that comes at once, or for overload, is a refusal.
    const moved = goodbye && goodbye !== 'overloaded' && askedMs > 0 && lastedMs >= usedMs;
    if (lastedMs >= healthyMs) this.#failures = 0;
    else if (!moved) this.#failures++;
    return moved ? askedMs : Math.max(askedMs, Math.random() * Math.min(capMs, baseMs * 2 ** this.#failures));
  }
}
