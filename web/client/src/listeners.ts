import type { Changes } from './replica.js';
import type { View } from './view.js';

/** Called with the current view, and with what changed since the last call. */
export type Listener<V> = (view: View<V>, changes: Changes) => void;

/** What can be followed like a store: stores themselves, and what is made from one. */
export interface Readable<V = unknown> {
  /** The current view: the same object until something in it changes. */
  readonly view: View<V>;
  /** Calls run at once, and after each change, until the returned function is called. */
  subscribe(run: Listener<V>): () => void;
}

/** What has a view that changes: a window, or counts. */
export interface Live<D> {
  readonly view: D;
  subscribe(run: (view: D) => void): () => void;
}

/** Returns all keys as changes, for a listener that knows none. Most listeners do not ask for them. */
export function added(resources: ReadonlyMap<string, unknown>): Changes {
  let keys: Set<string> | undefined;
  return {
    replaced: false,
    get keys() {
      return (keys ??= new Set(resources.keys()));
    },
  };
}

/** A state that listeners are to see. */
interface Call<S, C> {
  readonly state: S;
  readonly changes: C;
  /** Those that were there when the state came. */
  readonly listeners: ReadonlyArray<(state: S, changes: C) => void>;
}

/** The listeners of one store, or of what is made from one: all of them see all states in order, whatever they do. */
export class Listeners<S, C = Changes> {
  readonly #all = new Set<(state: S, changes: C) => void>();
  // A listener may change the store: its new state waits until all have seen the last one.
  #calls: Array<Call<S, C>> = [];
  #calling: boolean | undefined;

  /** Adds a listener, which is called at once. If that call throws, so does add, and there is no other. */
  add(run: (state: S, changes: C) => void, state: S, changes: C): () => void {
    const listener = (state: S, changes: C) => run(state, changes); // allows the same function to subscribe twice
    const unsubscribe = () => void this.#all.delete(listener);
    const nested = this.#calling;
    this.#all.add(listener);
    this.#calling = true;
    try {
      listener(state, changes);
    } catch (error) {
      unsubscribe();
      throw error;
    } finally {
      this.#calling = nested;
      this.#call();
    }
    return unsubscribe;
  }

  /** Calls all listeners, after those calls that are under way. */
  call(state: S, changes: C): void {
    this.#calls.push({ state, changes, listeners: [...this.#all] });
    this.#call();
  }

  // Makes the calls that wait, unless that is under way.
  #call(): void {
    if (this.#calling) return;
    this.#calling = true;
    for (let call = this.#calls.shift(); call; call = this.#calls.shift()) {
      const { state, changes } = call;
      for (const listener of call.listeners) if (this.#all.has(listener)) attempt(() => listener(state, changes));
    }
    this.#calling = false;
  }
}

/** Runs a function of the page. If it throws, that must not affect the stream or other listeners. */
export function attempt(run: () => void): void {
  try {
    run();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
