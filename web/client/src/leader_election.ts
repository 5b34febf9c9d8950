/**
 * Whether this tab leads those of its name: as long as it holds the Web Lock of that
 * name. The browser passes the lock on when a tab is closed or crashes.
 */
export class Leadership {
  #queued: AbortController | undefined;
  #end: (() => void) | undefined; // of the time in which this tab leads

  /** lead is called when this tab begins to, and returns what ends that; failed if there are no locks here. */
  constructor(private readonly name: string, private readonly lead: () => () => void, private readonly failed: () => void) {}

  /** Leads as soon as nobody else does. */
  enter(): void {
    if (!this.#queued) void this.#request();
  }

  /** Leads now: whoever leads does not answer. */
  seize(): void {
    if (this.#end) return;
    this.leave();
    void this.#request({ steal: true });
  }

  /** Leads no longer, and does not want to. */
  leave(): void {
    this.#queued?.abort();
    this.#queued = undefined;
    this.#end?.();
  }

  async #request(how: LockOptions = {}): Promise<void> {
    const queued = this.#queued = new AbortController();
    try {
      await navigator.locks.request(this.name, how.steal ? how : { signal: queued.signal }, () => this.#hold(queued.signal));
    } catch (error) {
      if ((error as Error).name === 'AbortError') return this.#aborted(queued);
      this.failed(); // an origin that has no locks
    }
  }

  // The lock is held until the promise is settled.
  #hold(left: AbortSignal): Promise<void> | undefined {
    if (left.aborted) return undefined;
    const end = this.lead();
    return new Promise((resolve) => {
      this.#end = () => {
        this.#end = undefined;
        end();
        resolve();
      };
    });
  }

  // Either it was withdrawn, or another tab seized the lock: this one had not
  // answered, and stands in line again.
  #aborted(queued: AbortController): void {
    if (queued.signal.aborted) return;
    this.leave();
    this.enter();
  }
}
