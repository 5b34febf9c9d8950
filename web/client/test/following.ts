import { afterEach, beforeEach, expect, vi } from 'vitest';
import type { Store } from '../src/store.js';
import { type Watches, type WatchOptions, watch } from '../src/watch.js';
import { pass, Server, snapshot } from './server.js';

export const url = 'http://gateway.test/live/';

/** A page that follows a gateway, in fake time. */
export class Following {
  server!: Server;
  tide!: Watches;
  // Node has neither a window nor a document, so tests bring their own.
  readonly window = new EventTarget();
  #hidden = false;

  /** Follows w. */
  async start(options: WatchOptions = {}): Promise<Store> {
    this.tide = watch(url, { watches: ['w'], ...options });
    await pass();
    return this.tide.store('w');
  }

  /** Follows w, and lets the first snapshot arrive. */
  async follow(options: WatchOptions = {}): Promise<Store> {
    const store = await this.start(options);
    this.server.last.accept(snapshot('w'));
    await pass();
    return store;
  }

  happens(type: string): void {
    this.window.dispatchEvent(new Event(type));
  }

  visibility(hidden: boolean): void {
    this.#hidden = hidden;
    this.happens('visibilitychange');
  }

  begin(): void {
    vi.useFakeTimers({ now: 1_000_000 });
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    this.server = new Server();
    this.#hidden = false;
    const addEventListener = this.window.addEventListener.bind(this.window);
    const removeEventListener = this.window.removeEventListener.bind(this.window);
    vi.stubGlobal('addEventListener', addEventListener);
    vi.stubGlobal('removeEventListener', removeEventListener);
    const hidden = () => this.#hidden;
    vi.stubGlobal('document', {
      get hidden() {
        return hidden();
      },
      addEventListener,
      removeEventListener,
    });
  }

  async end(): Promise<void> {
    this.tide?.close();
    await pass();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
    expect(vi.getTimerCount()).toBe(0);
  }
}

/** A new page for each test of a file. */
export function following(): Following {
  const all = new Following();
  beforeEach(() => all.begin());
  afterEach(() => all.end());
  return all;
}
