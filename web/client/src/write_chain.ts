/**
 * Writes of a page, one after the other for each key. Each is based on the revision that the
 * one before it has made, as long as the page may not have received that, and fails if that failed.
 */
export class WriteChain {
  readonly #last = new Map<string, Promise<string | null>>();

  /**
   * Makes a write. revision: the one that the page has, null for none. write returns the one
   * that it has made, and received resolves when the page has that.
   */
  async add(
    key: string,
    revision: string | null,
    write: (revision: string | null) => Promise<string | null>,
    received: (made: string | null) => Promise<void>,
  ): Promise<void> {
    const base = this.#last.get(key) ?? Promise.resolve(revision);
    const made = base.then(write);
    this.#last.set(key, made);
    try {
      await received(await made);
    } finally {
      if (this.#last.get(key) === made) this.#last.delete(key);
    }
  }
}
