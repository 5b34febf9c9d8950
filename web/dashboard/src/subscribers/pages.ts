import type { Subscriber, Subscribers } from '@watchtide/protocol';

/** A part of the list, which begins after a place and was fetched with a limit. */
export interface Page {
  /** The `next` of the page before; '' for the first page. */
  readonly after: string;
  readonly limit: number;
  readonly rows: readonly Subscriber[];
  /** undefined: nothing follows. */
  readonly next: string | undefined;
}

/** What to ask the gateway for. */
export type Wanted = Pick<Page, 'after' | 'limit'>;

const usual = 200;
const largest = 1000;

/** The pages that were fetched so far, from the first one on. Immutable. */
export class Pages {
  readonly pages: readonly Page[];
  /** The number of their rows. */
  readonly loaded: number;

  constructor(pages: readonly Page[]) {
    this.pages = pages;
    this.loaded = pages.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  /** Reports whether nothing follows. */
  get complete(): boolean {
    return this.pages.length > 0 && this.pages.at(-1)!.next === undefined;
  }

  /** Returns a row; undefined if it is not loaded. */
  at(index: number): Subscriber | undefined {
    let from = 0;
    for (const { rows } of this.pages) {
      if (index < from + rows.length) return rows[index - from];
      from += rows.length;
    }
    return undefined;
  }

  /** Returns the page with a row, to be refreshed, or else the next one on the way to it; undefined if there is none. */
  wanted(index: number): Wanted | undefined {
    let from = 0;
    for (const { after, limit, rows } of this.pages) {
      from += rows.length;
      if (index < from) return { after, limit };
    }
    const next = this.pages.at(-1)?.next;
    return next === undefined ? undefined : { after: next, limit: index - from > largest ? largest : usual };
  }

  /** Returns the pages with the answer to what was wanted. Subscribers that are on the next page by now are not on this one. */
  with(wanted: Wanted, { subscribers, next }: Subscribers): Pages {
    const known = this.pages.findIndex(({ after }) => after === wanted.after);
    const at = known < 0 && this.pages.at(-1)?.next === wanted.after ? this.pages.length : known;
    if (at < 0) return this; // it is of a page that there is no more
    const before = this.pages.slice(0, at);
    const after = next === undefined ? [] : this.pages.slice(at + 1);
    const others = new Set([before.at(-1), after[0]].flatMap((page) => page?.rows ?? []).map(({ id }) => id));
    const rows = subscribers.filter(({ id }) => !others.has(id));
    return new Pages([...before, { ...wanted, rows, next: after[0]?.after ?? next }, ...after]);
  }

  /** Returns the first page alone. */
  first(): Pages {
    return this.pages.length > 1 ? new Pages(this.pages.slice(0, 1)) : this;
  }
}
