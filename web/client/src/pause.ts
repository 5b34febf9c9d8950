import { timer } from './timer.js';

/** A wait that can be shortened, one at a time. */
export class Pause {
  #end: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #uninterruptible: boolean | undefined;
  #dueAt = Infinity;

  /** Waits. Only `end` ends an uninterruptible wait early: the server asked for it. */
  begin(ms: number, uninterruptible = false): Promise<void> {
    this.#uninterruptible = uninterruptible;
    return new Promise((resolve) => {
      this.#end = resolve;
      this.#set(ms);
    });
  }

  /** Reduces the rest of an interruptible wait to at most ms, and returns whether it was longer. */
  shorten(ms: number): boolean {
    if (!this.#end || this.#uninterruptible || this.#dueAt <= Date.now() + Math.max(0, ms)) return false;
    this.#set(ms);
    return true;
  }

  #set(ms: number): void {
    clearTimeout(this.#timer);
    this.#dueAt = Date.now() + ms;
    this.#timer = timer(() => this.end(), ms);
  }

  /** Ends the wait if its time is over: the timer may be late. */
  check(): void {
    if (Date.now() >= this.#dueAt) this.end();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#end?.();
    this.#end = undefined;
  }
}
