const baseMs = 1_000;
const capMs = 30_000;
const healthyMs = 60_000;

/**
 * The time to wait before the next attempt: with full jitter, so that the clients of
 * a server that failed do not all come back at once, and never less than the server
 * asked for.
 */
export class Backoff {
  #failures = 0;

  /** Records that a connection ended, and how long it lasted. */
  ended(livedMs: number): void {
    this.#failures = livedMs >= healthyMs ? 0 : this.#failures + 1;
  }

  /** Returns the wait, in ms; askedMs is what the server asked for. */
  next(askedMs: number): number {
    const ceiling = Math.min(capMs, baseMs * 2 ** this.#failures);
    return Math.max(askedMs, Math.random() * ceiling);
  }
}
