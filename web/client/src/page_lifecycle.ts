/** The events of a page that affect a connection. */
export interface PageEvents {
  /** The network is back. */
  online(): void;
  /** The tab is visible again. */
  shown(): void;
  /** The tab has been hidden for longer than hiddenMs. */
  hiddenTooLong(): void;
}

/** Listens to the page, if there is one: in Node no event ever occurs. */
export class PageLifecycle {
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #online: () => void;

  constructor(private readonly hiddenMs: number, private readonly events: PageEvents) {
    this.#online = () => events.online();
    globalThis.addEventListener?.('online', this.#online);
    globalThis.document?.addEventListener('visibilitychange', this.#visibility);
    if (globalThis.document?.hidden) this.#visibility();
  }

  close(): void {
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.('online', this.#online);
    globalThis.document?.removeEventListener('visibilitychange', this.#visibility);
  }

  readonly #visibility = (): void => {
    clearTimeout(this.#timer);
    if (!document.hidden) return this.events.shown();
    if (this.hiddenMs !== Infinity) this.#timer = setTimeout(() => this.events.hiddenTooLong(), this.hiddenMs);
  };
}
