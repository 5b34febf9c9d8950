// How long the page may be kept from drawing and from answering clicks, in ms.
const busyMs = 12;

// What takes longer than this has waited, and the page had its turn.
const waitMs = 1;

/**
 * Gives the page a turn again and again while there is always more to be done: what has already arrived is read without
 * a task of its own, so that without this a stream that is faster than the page would keep it from everything else.
 */
export class Turns {
  #busy = 0; // since the page had its turn
  #since = performance.now();

  /** Returns what is waited for, after a turn of the page if one is due. */
  async after<T>(next: Promise<T>): Promise<T> {
    const asked = performance.now();
    this.#busy += asked - this.#since;
    const result = await next;
    this.#since = performance.now();
    if (this.#since - asked > waitMs) this.#busy = 0;
    if (this.#busy < busyMs) return result;
    await turn();
    this.#busy = 0;
    this.#since = performance.now();
    return result;
  }
}

// A message is a task, and is not delayed in a hidden tab as a timer is.
function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}
