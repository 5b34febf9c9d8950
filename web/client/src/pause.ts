/** A wait that can be shortened. One at a time. */
export class Pause {
  #end: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #patient = false;
  #dueAt = Infinity;

  /** Waits; `to its end` only `end` ends it early, since the server asked for it. */
  begin(ms: number, until: 'to its end' | 'until woken'): Promise<void> {
    this.#patient = until === 'to its end';
    return new Promise((resolve) => {
      this.#end = resolve;
      this.#dueAt = Date.now() + ms;
      if (ms !== Infinity) this.#timer = setTimeout(() => this.end(), ms);
    });
  }

  /** Leaves at most so many ms of it, unless it is to be waited to its end. */
  shorten(ms: number): void {
    if (!this.#end || this.#patient) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), Math.max(0, ms));
  }

  /** Ends it if it is over: a timer may be late. */
  check(): void {
    if (Date.now() >= this.#dueAt) this.end();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#end?.();
    this.#end = undefined;
  }
}
