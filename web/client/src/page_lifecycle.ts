import { timer } from './timer.js';

/** The events of a page that affect a connection. */
export interface PageEvents {
  /** The network is back. */
  online(): void;
  /** The tab is visible, or runs, again. */
  shown(): void;
  /** The page must not hold a connection until it is shown: it has been hidden for longer than hiddenMs, is frozen, or was left. */
  away(reason: string): void;
}

/** Listens to the page, if there is one: in Node no event ever occurs. */
export class PageLifecycle {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #late: boolean | undefined; // hidden for too long
  readonly #closed = new AbortController();

  constructor(
    private readonly hiddenMs = 300_000,
    private readonly events: PageEvents,
  ) {
    // A browser keeps a page that was left, and may show it again, if it holds no connection.
    this.#listen(globalThis, {
      online: () => events.online(),
      pagehide: () => events.away('this tab was left'),
      pageshow: () => this.#back(),
    });
    this.#listen(globalThis.document, {
      freeze: () => events.away('this tab was frozen'),
      resume: () => this.#back(),
      visibilitychange: () => this.#visibility(),
    });
    if (globalThis.document?.hidden) this.#visibility();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#closed.abort();
  }

  #listen(target: EventTarget | undefined, on: Record<string, () => void>): void {
    for (const type in on) target?.addEventListener?.(type, on[type]!, this.#closed);
  }

  // A tab may run again while it is hidden.
  #back(): void {
    if (!this.#late) this.events.shown();
  }

  #visibility(): void {
    clearTimeout(this.#timer);
    this.#late = false;
    if (!document.hidden) return this.events.shown();
    if (this.hiddenMs === Infinity) return;
    this.#timer = timer(() => {
      this.#late = true;
      this.events.away('this tab was hidden for too long');
    }, this.hiddenMs);
  }
}
