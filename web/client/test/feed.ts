import type { Event } from '../src/protocol.js';
import { canonical } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { closed, Stores } from '../src/stores.js';

export const up = (key: string, revision: number, value: unknown): Event => ({
  type: 'upsert',
  watch: 'w',
  key,
  revision: String(revision),
  value,
});
export const gone = (key: string, revision: number): Event => ({ type: 'delete', watch: 'w', key, revision: String(revision) });
export const end = (revision: number) => ({ type: 'end_of_snapshot', watch: 'w', revision: String(revision) }) as Event;
export const reset: Event = { type: 'reset', watch: 'w', reason: 'expired' };

/** A store of the watch w that a test feeds with events. */
export class Feed<V = unknown> {
  readonly stores = new Stores();
  readonly store = this.stores.add(canonical('w')) as Store<V>;

  /** A stream begins. */
  open(): this {
    this.stores.request();
    this.stores.open();
    return this;
  }

  /** Events arrive together, at the revision of the last one. */
  feed(...events: Event[]): this {
    for (const event of events) this.stores.take(event);
    const { revision = '0' } = events.at(-1) as { revision?: string };
    this.stores.commit(`w@e-${revision}`);
    this.stores.publish();
    return this;
  }

  /** A whole snapshot, with revisions from one on. */
  snapshot(values: Record<string, unknown>): this {
    const events = Object.entries(values).map(([key, value], i) => up(key, i + 1, value));
    return this.feed(reset, ...events, end(events.length));
  }

  close(error?: Error): void {
    this.stores.disconnect(closed(error));
  }
}
