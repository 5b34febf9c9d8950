/** The events of a page that affect a connection. */
export interface PageEvents {
  /** The network is back. */
  online(): void;
  /** The tab is visible, or runs, again. */
  shown(): void;
  /** The page must not hold a connection until it is shown: it has been hidden for longer than hiddenMs, is frozen, or was left. */
  away(reason: string): void;
}

type Listener = readonly [target: 'window' | 'document', type: string, run: () => void];

/** Listens to the page, if there is one: in Node no event ever occurs. */
export class PageLifecycle {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #late = false; // hidden for too long
  readonly #listeners: readonly Listener[];

  constructor(
    private readonly hiddenMs: number,
    private readonly events: PageEvents,
  ) {
    // A browser keeps a page that was left, and may show it again, if it holds no connection.
    this.#listeners = [
      ['window', 'online', () => events.online()],
      ['window', 'pagehide', () => events.away('the page was left')],
      ['window', 'pageshow', () => this.#back()],
      ['document', 'freeze', () => events.away('this tab was frozen')],
      ['document', 'resume', () => this.#back()],
      ['document', 'visibilitychange', () => this.#visibility()],
    ];
    for (const [target, type, run] of this.#listeners) of(target)?.addEventListener?.(type, run);
    if (globalThis.document?.hidden) this.#visibility();
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const [target, type, run] of this.#listeners) of(target)?.removeEventListener?.(type, run);
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
    this.#timer = setTimeout(() => {
      this.#late = true;
      this.events.away('this tab was hidden for too long');
    }, this.hiddenMs);
  }
}

const of = (target: Listener[0]): EventTarget | undefined => (target === 'window' ? globalThis : globalThis.document);
