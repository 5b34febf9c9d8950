import { parse } from '@watchtide/client/digits';
import type { HistoricChange, History } from '@watchtide/protocol';
import { at } from '../gateway/base';
import { refusal } from '../gateway/refusal';
import { ask } from '../gateway/session';

/** What is known of the past of a watch, or of one of its resources. */
export interface Known {
  /** The newest first. */
  readonly changes: readonly HistoricChange[];
  /** No change after this revision is missing; undefined: nothing is known yet. */
  readonly since: { readonly revision: string; readonly time?: string } | undefined;
  /** Whether the gateway may have older ones. */
  readonly more: boolean;
  /** Whether older ones were dropped here, for there are very many. */
  readonly dropped: boolean;
  readonly instance: string;
  readonly loading: boolean;
  readonly error: string;
  /** The number of requests that have failed since the last one that did not. */
  readonly failures: number;
}

/** The most changes that are kept; the oldest are dropped. */
export const maxKept = 2000;

// Of a resource, and of a watch: many resources change only once in a few hundred changes, and what a change did
// is only known with the one before.
const pageSize = { resource: 200, watch: 1000 };
const timeoutMs = 10_000;
const nothing: Known = { changes: [], since: undefined, more: false, dropped: false, instance: '', loading: false, error: '', failures: 0 };

/** Names a change: a resource is changed once at a revision, and may be deleted at the same. */
export const idOf = ({ key, key_encoding, revision, type }: HistoricChange): string => `${type} ${revision} ${key_encoding ?? ''} ${key}`;

/** Reports whether there was no resource before a change, of which no earlier one was loaded. */
export const isCreation = ({ revision }: HistoricChange, { since, more, dropped }: Known): boolean =>
  since !== undefined && !more && !dropped && BigInt(revision) > BigInt(since.revision);

const isRefused = ({ status }: Response) => status === 401 || status === 403 || status === 404;

/** The changes of a watch, or of a resource, as far as they were loaded. */
export class Past {
  private known = nothing;
  private next = '';
  private position = '';
  private asking: AbortController | undefined;
  private again = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly watch: string,
    private readonly key?: { readonly text: string; readonly encoding?: string },
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.asking?.abort();
    };
  };
  readonly snapshot = (): Known => this.known;

  /** Loads what is newer, once. If that is being done already, it is done again after that. */
  async newer(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return;
    }
    await this.load(this.position ? { after: this.position } : {}, (page) => this.addNewer(page));
    if (!this.again) return;
    this.again = false;
    await this.newer();
  }

  /** Loads what is older, if nothing else is being loaded. */
  async older(): Promise<void> {
    if (this.asking || !this.next || this.known.dropped) return;
    await this.load({ before: this.next }, (page) => {
      this.next = page.next;
      this.publish({ ...this.seen(page), changes: [...this.known.changes, ...this.unknown(page)], more: page.next !== '' });
    });
  }

  private addNewer(page: History): void {
    const first = this.position === '';
    if (first) this.next = page.next;
    this.position = page.position;
    const news = this.unknown(page);
    // Without all that is in between, what was known is of no use.
    const joined = first || page.next === '' ? [...news, ...this.known.changes] : news;
    if (!first && page.next !== '') this.next = page.next;
    const dropped = this.known.dropped || joined.length > maxKept;
    this.publish({ ...this.seen(page), changes: joined.slice(0, maxKept), more: !dropped && this.next !== '', dropped });
  }

  // Another replica may repeat changes.
  private unknown(page: History): readonly HistoricChange[] {
    const ids = new Set(this.known.changes.map(idOf));
    return page.changes.filter((change) => !ids.has(idOf(change)));
  }

  private seen({ complete_since, instance }: History): Partial<Known> {
    const before = this.known.since;
    const later = !before || BigInt(complete_since.revision) > BigInt(before.revision);
    return { since: later ? complete_since : before, instance, error: '', failures: 0 };
  }

  private async load(place: Readonly<Record<string, string>>, use: (page: History) => void): Promise<void> {
    const ended = new AbortController();
    this.asking = ended;
    this.publish({ loading: true });
    try {
      const response = await ask(this.url(place), { signal: AbortSignal.any([ended.signal, AbortSignal.timeout(timeoutMs)]) });
      if (response.status === 410) this.forget();
      else if (!response.ok) this.fail(await refusal(response), isRefused(response));
      else use(parse(await response.text()) as History);
    } catch (error) {
      if (!ended.signal.aborted) this.fail(error instanceof Error ? error.message : String(error), false);
    }
    this.asking = undefined;
    this.publish({ loading: false });
  }

  // The watch has begun again.
  private forget(): void {
    this.clear();
    this.again = true;
  }

  // Nothing that was loaded before may be shown to a user who is refused.
  private fail(error: string, refused: boolean): void {
    const failures = this.known.failures + 1;
    if (refused) this.clear();
    this.publish({ error, failures });
  }

  private clear(): void {
    this.known = nothing;
    this.next = this.position = '';
  }

  private url(place: Readonly<Record<string, string>>): URL {
    const url = at(`v1/watches/${encodeURIComponent(this.watch)}/history`);
    const key = this.key && { key: this.key.text, ...(this.key.encoding && { key_encoding: this.key.encoding }) };
    url.search = new URLSearchParams({ limit: String(key ? pageSize.resource : pageSize.watch), ...key, ...place }).toString();
    return url;
  }

  private publish(change: Partial<Known>): void {
    this.known = { ...this.known, ...change };
    for (const listener of this.listeners) listener();
  }
}
