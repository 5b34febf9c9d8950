import type { Snapshot } from './snapshot.js';
import { canonical, specsOf, type WatchSpec } from './spec.js';

/** A snapshot on its way to a hub. Its values are the texts of events, as a hub keeps them. */
export interface RawSnapshot extends Snapshot<string> {
  /** The part of the query of a stream that it belongs to. */
  readonly query: string;
}

// Another tab may keep the digits of large integers, which this one has lost.
const inexact = /(?<![.\d])\d{16}|e\+/;

/**
 * The snapshots that the stores of a tab begin with. A hub that has nothing yet goes on from them, and asks the
 * gateway only for what has changed since.
 */
export class InitialSnapshots {
  readonly #all = new Map<string, { readonly watch: string; readonly initial: Snapshot }>(); // by query

  add(spec: WatchSpec): void {
    const { watch, query, initial } = canonical(spec);
    if (initial) this.#all.set(query, { watch, initial });
  }

  /** Returns those from which a request for a stream goes on. */
  of({ url, lastEventId }: { readonly url: string; readonly lastEventId: string }): RawSnapshot[] {
    const queries = specsOf(new URLSearchParams(url.slice(url.indexOf('?')))).map((spec) => canonical(spec).query);
    return queries.flatMap((query) => {
      const begun = this.#all.get(query);
      if (!begun) return [];
      const { watch, initial } = begun;
      const position = lastEventId.split(',').find((one) => one.startsWith(`${watch}@`)) ?? '';
      if (position && initial.position.split(',').includes(position)) return raw(watch, query, { ...initial, position });
      this.#all.delete(query); // the store is beyond it
      return [];
    });
  }
}

function raw(watch: string, query: string, snapshot: Snapshot): RawSnapshot[] {
  const resources = snapshot.resources.map(({ hash, ...resource }) => ({
    ...resource,
    ...(hash && { hash }),
    value: JSON.stringify({ type: 'upsert', watch, ...resource }),
  }));
  return resources.some(({ value }) => inexact.test(value)) ? [] : [{ ...snapshot, query, resources }];
}
