import type { Resource } from '../src/resource.js';
import { compareBy } from '../src/window.js';
import { type Exchange, hello, remove, reset, type Server, upsert } from './server.js';

export interface Row {
  readonly n?: number | string;
  readonly v: number;
}

/** A gateway with one watch, which answers each stream with the window that it asks for. */
export class Gateway {
  readonly state = new Map<string, readonly [revision: number, value: Row]>();
  #revision = 1;
  #streams: Array<{ readonly exchange: Exchange; shown: Map<string, Resource> }> = [];

  constructor(private readonly server: Server) {}

  /** What a window has. */
  window(query: URLSearchParams): { rows: Resource[]; total: number; before: number; next: string } {
    const of = (name: string) => query.get(`${name}.w`);
    const all = [...this.state].map(([key, [revision, value]]) => ({ key, revision: `${revision}`, value })).sort(compareBy(of('order')!));
    const after = of('after');
    const from = after ? all.findIndex(({ key }) => key === after) + 1 : Number(of('offset'));
    const rows = all.slice(from, from + Number(of('limit')));
    const next = from + rows.length < all.length ? (rows.at(-1)?.key ?? '') : '';
    return { rows, total: all.length, before: Math.min(from, all.length), next };
  }

  /** Sends heartbeats, and answers new requests. */
  answer(): void {
    for (const { exchange } of this.#streams) if (exchange.open) exchange.send(': heartbeat\n\n');
    for (const exchange of this.server.exchanges) {
      if (exchange.signal.aborted || exchange.open || this.#streams.some((one) => one.exchange === exchange)) continue;
      const { rows, ...place } = this.window(exchange.url.searchParams);
      const end = { type: 'end_of_snapshot', watch: 'w', revision: `${this.#revision}`, count: rows.length, ...place };
      const events = rows.map(({ key, revision, value }) => upsert('w', key, Number(revision), value));
      exchange.accept(hello(['w']) + reset('w', `w@e-0/${this.#revision}`) + events.join('') + this.#event(end));
      this.#streams.push({ exchange, shown: new Map(rows.map((row) => [row.key, row])) });
    }
  }

  /** One transaction, of which each stream gets what concerns its window. */
  commit(changes: ReadonlyArray<readonly [key: string, value: Row | undefined]>): void {
    this.#revision++;
    for (const [key, value] of changes) value ? this.state.set(key, [this.#revision, value]) : this.state.delete(key);
    for (const stream of this.#streams.filter(({ exchange }) => exchange.open)) {
      const { rows, ...place } = this.window(stream.exchange.url.searchParams);
      const now = new Map(rows.map((row) => [row.key, row]));
      const left = [...stream.shown.keys()].filter((key) => !now.has(key)).map((key) => remove('w', key, this.#revision));
      const set = rows.filter(({ key, revision }) => stream.shown.get(key)?.revision !== revision);
      stream.shown = now;
      const events = set.map(({ key, revision, value }) => upsert('w', key, Number(revision), value));
      const bookmark = { type: 'bookmark', watch: 'w', revision: `${this.#revision}`, ...place };
      stream.exchange.send(left.join('') + events.join('') + this.#event(bookmark));
    }
  }

  #event({ next, ...event }: { type: string; next: string }): string {
    return `event: ${event.type}\ndata: ${JSON.stringify({ ...event, ...(next && { next }) })}\nid: w@e-${this.#revision}\n\n`;
  }
}
