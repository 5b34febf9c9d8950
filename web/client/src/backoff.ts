const baseMs = 1_000;
const capMs = 30_000;
const healthyMs = 60_000;

/**
 * How long to wait before the next attempt: with full jitter, so that many clients
 * that lost the same server do not come back together, and never before the moment
 * that the server named.
 */
export class Backoff {
  #failures = 0;

  /** A connection ended that had lived for so long. */
  ended(livedMs: number): void {
    this.#failures = livedMs >= healthyMs ? 0 : this.#failures + 1;
  }

  /** The wait, in ms; askedMs is what the server asked for. */
  next(askedMs: number): number {
    const ceiling = Math.min(capMs, baseMs * 2 ** this.#failures);
    return Math.max(askedMs, Math.random() * ceiling);
  }
}
