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

// All keys, for a listener that knows none. Most listeners do not ask for them.
function added(resources: ReadonlyMap<string, unknown>): Changes {
  let keys: Set<string> | undefined;
  return {
    replaced: false,
    get keys() {
      return (keys ??= new Set(resources.keys()));
    },
  };
}

/** A view that listeners are to see. */
interface Call<V> {
  readonly view: View<V>;
  readonly changes: Changes;
  /** Those that were there when the view came. */
  readonly listeners: ReadonlyArray<Listener<V>>;
}

/** The listeners of one store: all of them see all views in order, whatever they do. */
export class Listeners<V> {
  readonly #all = new Set<Listener<V>>();
  // A listener may change the store: its new view waits until all have seen the last one.
  #calls: Array<Call<V>> = [];
  #calling = false;

  /** Adds a listener, which is called with this view at once. If that call throws, so does add, and there is no other. */
  add(run: Listener<V>, view: View<V>): () => void {
    const listener: Listener<V> = (view, changes) => run(view, changes); // allows the same function to subscribe twice
    const unsubscribe = () => void this.#all.delete(listener);
    const nested = this.#calling;
    this.#all.add(listener);
    this.#calling = true;
    try {
      listener(view, added(view.resources));
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
  call(view: View<V>, changes: Changes): void {
    this.#calls.push({ view, changes, listeners: [...this.#all] });
    this.#call();
  }

  // Makes the calls that wait, unless that is under way.
  #call(): void {
    if (this.#calling) return;
    this.#calling = true;
    for (let call = this.#calls.shift(); call; call = this.#calls.shift()) {
      for (const listener of call.listeners) if (this.#all.has(listener)) notify(listener, call);
    }
    this.#calling = false;
  }
}

function notify<V>(listener: Listener<V>, { view, changes }: Call<V>): void {
  try {
    listener(view, changes);
  } catch (error) {
    // A listener that throws must not affect the stream or other listeners.
    queueMicrotask(() => {
      throw error;
    });
  }
}
