import type { Resource } from '../src/resource.js';
import { compareBy } from '../src/window.js';
import { type Exchange, remove, reset, type Server, upsert, wire } from './server.js';

export interface Row {
  readonly n?: number | string;
  readonly v: number;
}

/**
 * What becomes of a request to move a window: it is done, and the rows come before the answer or after it, which may be lost; or it
 * is not done, because of the network, or the gateway refuses it.
 */
export type Fate = 'done' | 'rows late' | 'answer late' | 'answer lost' | 'lost' | 400 | 401 | 403 | 404 | 429 | 503;

interface Stream {
  readonly exchange: Exchange;
  readonly query: URLSearchParams;
  shown: Map<string, Resource>;
  move: number;
  moved: boolean; // the rows are not sent yet
}

/** A gateway with one watch, which answers each stream with the window that it asks for, and moves windows unless it is older. */
export class Gateway {
  readonly state = new Map<string, readonly [revision: number, value: Row]>();
  /** The requests to move a window. */
  readonly moves: URL[] = [];
  /** What becomes of the next requests to move a window; `done` if there is none. */
  readonly fates: Fate[] = [];
  #revision = 1;
  #streams: Stream[] = [];
  readonly #taken = new Set<Exchange>();
  #late: Array<() => void> = []; // answers

  constructor(
    private readonly server: Server,
    private readonly moving = true,
  ) {}

  /** What a window has. */
  window(query: URLSearchParams): { rows: Resource[]; total: number; before: number; next: string } {
    const of = (name: string) => query.get(`${name}.w`);
    const all = [...this.state].map(([key, [revision, value]]) => ({ key, revision: `${revision}`, value })).sort(compareBy(of('order')!));
    const after = of('after');
    const from = after !== null && after !== '' ? all.findIndex(({ key }) => key === after) + 1 : Number(of('offset'));
    const rows = all.slice(from, from + Number(of('limit')));
    const next = from + rows.length < all.length ? (rows.at(-1)?.key ?? '') : '';
    return { rows, total: all.length, before: Math.min(from, all.length), next };
  }

  /** Sends heartbeats and what is late, and answers new requests. */
  answer(): void {
    for (const answer of this.#late.splice(0)) answer();
    for (const stream of this.#open) {
      if (stream.moved) this.#send(stream);
      stream.exchange.send(': heartbeat\n\n');
    }
    for (const exchange of this.server.exchanges) {
      if (exchange.signal.aborted || this.#taken.has(exchange)) continue;
      this.#taken.add(exchange);
      if (exchange.url.pathname.endsWith('/window')) this.#move(exchange, this.fates.shift() ?? 'done');
      else this.#begin(exchange);
    }
  }

  get #open(): Stream[] {
    return this.#streams.filter(({ exchange }) => exchange.open);
  }

  #begin(exchange: Exchange): void {
    const query = new URLSearchParams(exchange.url.search);
    const { rows, ...place } = this.window(query);
    const end = { type: 'end_of_snapshot', watch: 'w', revision: `${this.#revision}`, count: rows.length, ...place };
    const events = rows.map(({ key, revision, value }) => upsert('w', key, Number(revision), value));
    const name = this.moving ? { stream: `s${this.#streams.length}` } : {};
    const hello = wire({ type: 'hello', heartbeat_ms: 15_000, ...name, watches: [{ watch: 'w', mode: 'snapshot' }] } as never);
    // In pieces, as they arrive from a real one.
    exchange.accept(hello);
    exchange.send(reset('w', `w@e-0/${this.#revision}`));
    exchange.send(events.join(''));
    exchange.send(this.#event(end));
    this.#streams.push({ exchange, query, shown: new Map(rows.map((row) => [row.key, row])), move: 0, moved: false });
  }

  #move(exchange: Exchange, fate: Fate): void {
    this.moves.push(exchange.url);
    const [, name] = /streams\/s(\d+)\/window$/.exec(exchange.url.pathname)!;
    const stream = this.#streams[Number(name)];
    if (typeof fate === 'number') return exchange.refuse(fate, fate === 429 ? { 'Retry-After': '2' } : {});
    if (!stream?.exchange.open) return exchange.refuse(404);
    if (fate === 'lost') return exchange.fail();
    for (const of of ['offset', 'after', 'limit']) {
      const value = exchange.url.searchParams.get(of);
      value === null ? stream.query.delete(`${of}.w`) : stream.query.set(`${of}.w`, value);
    }
    const move = ++stream.move;
    stream.moved = true;
    const answer = () =>
      fate === 'answer lost' ? exchange.fail() : exchange.answer(new Response(JSON.stringify({ move }), { status: 200 }));
    if (fate === 'answer late' || fate === 'answer lost') this.#late.push(answer);
    else answer();
    if (fate !== 'rows late' && fate !== 'answer lost') this.#send(stream);
  }

  /** One transaction, of which each stream gets what concerns its window. */
  commit(changes: ReadonlyArray<readonly [key: string, value: Row | undefined]>): void {
    this.#revision++;
    for (const [key, value] of changes) value ? this.state.set(key, [this.#revision, value]) : this.state.delete(key);
    for (const stream of this.#open) this.#send(stream);
  }

  // What a stream has not: after a commit, and after a move.
  #send(stream: Stream): void {
    const { rows, ...place } = this.window(stream.query);
    const now = new Map(rows.map((row) => [row.key, row]));
    const left = [...stream.shown.keys()].filter((key) => !now.has(key)).map((key) => remove('w', key, this.#revision));
    const set = rows.filter(({ key, revision }) => stream.shown.get(key)?.revision !== revision);
    stream.shown = now;
    const events = set.map(({ key, revision, value }) => upsert('w', key, Number(revision), value));
    const move = stream.moved && { move: stream.move };
    stream.moved = false;
    const bookmark = { type: 'bookmark', watch: 'w', revision: `${this.#revision}`, ...place, ...move };
    stream.exchange.send(left.join('') + events.join('') + this.#event(bookmark));
  }

  #event({ next, ...event }: { type: string; next: string }): string {
    return `event: ${event.type}\ndata: ${JSON.stringify({ ...event, ...(next && { next }) })}\nid: w@e-${this.#revision}\n\n`;
  }
}
