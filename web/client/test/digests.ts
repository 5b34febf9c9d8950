import { bucketOf, bucketsOf, Digest, hashOf, hexOf } from '../src/digest.js';
import type { Exchange, Server } from './server.js';
import { bookmark, endOfSnapshot, hello, pass, reset, upsert, wire } from './server.js';

/** The state of a watch at a gateway that knows digests: the texts of values by key. */
export class State {
  readonly digest = new Digest();

  constructor(readonly values: Record<string, string>) {
    for (const [key, text] of Object.entries(values)) this.digest.add(hashOf(text, { key }));
  }

  with(values: Record<string, string | undefined>): State {
    const all = Object.entries({ ...this.values, ...values }).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return new State(Object.fromEntries(all));
  }

  get count(): number {
    return this.digest.count;
  }

  /** A stream that begins with all of it. */
  snapshot(watch: string, revision: number): string {
    const rows = Object.entries(this.values).map(([key, text]) => this.upsert(watch, key, revision, text));
    return reset(watch, `${watch}@e-0/${revision}`) + rows.join('') + this.end(watch, revision, `${watch}@e-${revision}`);
  }

  upsert(watch: string, key: string, revision: number, text = this.values[key]!): string {
    return upsert(watch, key, revision, 'VALUE').replace('"VALUE"', () => text);
  }

  end(watch: string, revision: number, id: string, more: object = {}): string {
    const digest = `${this.digest}`;
    return wire({ type: 'end_of_snapshot', watch, revision: String(revision), count: this.count, digest, ...more } as never, id);
  }

  /** A resume by digest. */
  verify(watch: string, revision: number, id: string): string {
    return this.end(watch, revision, id, { resumed: true, verify: true });
  }

  bookmark(watch: string, revision: number, id: string): string {
    return bookmark(watch, revision, id).replace('"type"', () => `"digest":"${this.digest}","type"`);
  }

  /** Answers a request about the state; undefined: it is about another one. */
  answer({ url }: Exchange): Response | undefined {
    const [, digest, part] = /\/digests\/([^/]*)\/?(.*)$/.exec(url.pathname) ?? [];
    if (digest !== `${this.digest}`) return undefined;
    const text = `{"digest":"${digest}",${part === '' ? this.#table() : part === 'keys' ? this.#keys(url) : this.#resources(url)}}`;
    return new Response(text, { headers: { 'Content-Type': 'application/json' } });
  }

  #table(): string {
    const buckets = Array.from({ length: bucketsOf(this.count) }, () => new Digest());
    for (const [key, text] of Object.entries(this.values)) buckets[bucketOf(key, buckets.length)]!.add(hashOf(text, { key }));
    const table = Buffer.alloc(12 * buckets.length);
    for (const [b, { count, low, high }] of buckets.entries()) {
      [count, low, high].forEach((word, i) => void table.writeUInt32LE(word, 12 * b + 4 * i));
    }
    return `"buckets":${buckets.length},"table":"${table.toString('base64')}"`;
  }

  // Pages of ten keys.
  #keys({ searchParams }: URL): string {
    const buckets = searchParams.getAll('bucket').map(Number);
    if (buckets.length > 100) throw new Error('too many buckets');
    const all = Object.entries(this.values).filter(([key]) => buckets.includes(bucketOf(key, bucketsOf(this.count))));
    const from = Number(searchParams.get('page_token') ?? 0);
    const keys = all.slice(from, from + 10).map(([key, text]) => ({ key, revision: '1', hash: hexOf(hashOf(text, { key })) }));
    return `"keys":${JSON.stringify(keys)},"next_page_token":"${from + 10 < all.length ? from + 10 : ''}"`;
  }

  // Reads at most seven keys at once.
  #resources({ searchParams }: URL): string {
    const keys = searchParams.getAll('key');
    const some = keys.slice(0, 7);
    const found = some.filter((key) => key in this.values);
    const texts = found.map((key) => `{"key":${JSON.stringify(key)},"revision":"1","value":${this.values[key]}}`);
    return `"resources":[${texts.join()}],"read":${some.length}`;
  }
}

/** Answers requests about states until there are none, and returns what was asked for. */
export async function answering(server: Server, ...states: State[]): Promise<Exchange[]> {
  const asked: Exchange[] = [];
  for (let quiet = 0; quiet < 3; quiet++) {
    await pass(100);
    for (const exchange of server.exchanges) {
      if (!exchange.url.pathname.includes('/digests/') || exchange.answered || exchange.signal.aborted) continue;
      quiet = -1;
      asked.push(exchange);
      const answer = states.map((state) => state.answer(exchange)).find(Boolean);
      answer ? exchange.answer(answer) : exchange.refuse(410);
    }
    await pass();
  }
  return asked;
}

export const resumed = (...watches: string[]): string => hello(watches, 'resume');
export { endOfSnapshot };
