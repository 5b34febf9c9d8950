/**
 * Elects one tab among those that use the same name: the leader is the tab that
 * holds the Web Lock of that name. The browser passes the lock on when the tab is
 * closed or crashes.
 */
export class LeaderElection {
  #candidacy: AbortController | undefined;
  #stopLeading: (() => void) | undefined; // set while this tab leads

  /**
   * elected is called when this tab becomes the leader, and returns a function that
   * is called when it no longer is; failed is called if locks are not available.
   */
  constructor(
    private readonly name: string,
    private readonly elected: () => () => void,
    private readonly failed: () => void,
  ) {}

  /** Becomes the leader as soon as no other tab is. */
  campaign(): void {
    if (!this.#candidacy) void this.#request();
  }

  /** Becomes the leader now, in place of one that does not respond. */
  takeOver(): void {
    if (this.#stopLeading) return;
    this.resign();
    void this.#request({ steal: true });
  }

  /** Stops being the leader or a candidate. */
  resign(): void {
    this.#candidacy?.abort();
    this.#candidacy = undefined;
    this.#stopLeading?.();
  }

  async #request(options: LockOptions = {}): Promise<void> {
    const candidacy = (this.#candidacy = new AbortController());
    try {
      await navigator.locks.request(this.name, options.steal ? options : { signal: candidacy.signal }, () => this.#lead(candidacy.signal));
    } catch (error) {
      if ((error as Error).name === 'AbortError') return this.#aborted(candidacy);
      this.failed(); // this origin has no locks
    }
  }

  // The lock is held until the promise is settled.
  #lead(resigned: AbortSignal): Promise<void> | undefined {
    if (resigned.aborted) return undefined;
    const stop = this.elected();
    return new Promise((resolve) => {
      this.#stopLeading = () => {
        this.#stopLeading = undefined;
        stop();
        resolve();
      };
    });
  }

  // Either this tab resigned, or another one stole the lock because this one did not
  // respond. In that case it becomes a candidate again.
  #aborted(candidacy: AbortController): void {
    if (candidacy.signal.aborted) return;
    this.resign();
    this.campaign();
  }
}
