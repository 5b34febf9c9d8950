import { bucketOf, bucketsOf, Digest, hashOfHex } from './digest.js';
import { elementsOf } from './json_text.js';
import { mapKey } from './resource.js';
import type { Hash } from './xxh64.js';

/** What is held of a watch, as far as a repair needs it. */
export interface Mendable {
  /** The digest that the server has. */
  readonly differs: string;
  held(): Iterable<Entry>;
  /** Something is held that the server does not have. */
  mend(key: string): void;
}

/** How a repair asks the server. */
export interface Asking {
  /** Returns the text of the answer to a request about the state with the digest that differs. */
  ask(path: string, query: URLSearchParams): Promise<string>;
  /** Takes the text of a resource that the server has. */
  take(text: string): void;
  /** Aborts when the stream ends. */
  readonly signal: AbortSignal;
}

/** So much differs that a snapshot is cheaper. */
export class TooMuchError extends Error {}

interface Named {
  readonly key: string;
  readonly key_encoding?: 'base64';
}

// Clients that resume at the same time spread their requests over this time.
const spreadMs = 250;

// The length of a task that goes through all that is held.
const taskMs = 20;

const bucketBytes = 12;
const bucketsAtOnce = 100;
const keysAtOnce = 1_000;
const maxQueryLength = 4_096;

// Of so many resources that are missing or other, more than a tenth of all are too many.
const freely = 1_000;
// If all of so many buckets differ, hardly anything is the same.
const manyBuckets = 8;

/**
 * Makes what is held that of the server: finds the buckets that differ by their table, then the keys in these, drops what
 * the server does not have, and reads what is missing or other. Returns how many resources differed.
 */
export async function repair(held: Mendable, asking: Asking): Promise<number> {
  const [, counted] = /^(\d{1,8})-[0-9a-f]{32}$/.exec(held.differs) ?? []; // beyond, the number of a bucket would not be exact
  if (!counted) throw new Error(`${held.differs} is not a digest`);
  const count = Number(counted);
  await pause(Math.random() * spreadMs, asking.signal);
  const theirs = tableOf(await asking.ask('', new URLSearchParams()), bucketsOf(count));
  const mine = await sumUp(held, theirs.length, asking.signal);
  const differing = [...mine.keys()].filter((b) => !same(mine[b]!.digest, theirs[b]!));
  if (differing.length === theirs.length && differing.length >= manyBuckets) throw new TooMuchError('all of it differs');
  const keys = await keysOf(asking, differing, count);
  const extra = drop(
    held,
    keys,
    differing.flatMap((b) => mine[b]!.entries),
  );
  if (keys.size > Math.max(freely, count / 10)) throw new TooMuchError(`${keys.size} of ${count} resources differ`);
  await read(asking, keys);
  return extra + keys.size;
}

interface Bucket {
  readonly count: number;
  readonly low: number;
  readonly high: number;
}

const same = (a: Bucket, b: Bucket) => a.count === b.count && a.low === b.low && a.high === b.high;

function tableOf(text: string, buckets: number): Bucket[] {
  const { table } = JSON.parse(text) as { table?: unknown };
  const bytes = Uint8Array.from(atob(String(table)), (c) => c.charCodeAt(0));
  if (bytes.length !== buckets * bucketBytes) throw new Error(`a table of ${bytes.length} bytes for ${buckets} buckets`);
  const view = new DataView(bytes.buffer);
  return Array.from({ length: buckets }, (_, b) => {
    const [count, low, high] = [0, 4, 8].map((at) => view.getUint32(b * bucketBytes + at, true)) as [number, number, number];
    return { count, low, high };
  });
}

type Entry = [key: string, hash: Hash | undefined];

// Returns what is held, in buckets. It is gone through once: that takes several tasks.
async function sumUp(held: Mendable, buckets: number, signal: AbortSignal): Promise<Array<{ digest: Digest; entries: Entry[] }>> {
  const mine = Array.from({ length: buckets }, () => ({ digest: new Digest(), entries: [] as Entry[] }));
  let from = performance.now();
  let n = 0;
  for (const entry of held.held()) {
    const { digest, entries } = mine[bucketOf(entry[0], buckets)]!;
    digest.add(entry[1]);
    entries.push(entry);
    if (++n % 1_000 || performance.now() - from < taskMs) continue;
    await pause(0, signal);
    from = performance.now();
  }
  return mine;
}

// Asks for the keys in some buckets, with the hashes of their resources.
async function keysOf(asking: Asking, buckets: number[], count: number): Promise<Map<string, Named & { hash: Hash }>> {
  const keys = new Map<string, Named & { hash: Hash }>();
  for (let from = 0; from < buckets.length; from += bucketsAtOnce) {
    const query = new URLSearchParams(buckets.slice(from, from + bucketsAtOnce).map((b) => ['bucket', String(b)]));
    for (let token: unknown = 'first'; token; query.set('page_token', String(token))) {
      const before = keys.size;
      const answer = JSON.parse(await asking.ask('/keys', query)) as { keys: Array<Named & { hash: unknown }>; next_page_token?: unknown };
      for (const { key, key_encoding, hash: hex } of answer.keys) {
        const hash = hashOfHex(hex);
        if (hash === undefined) throw new Error(`the hash of a key is ${JSON.stringify(hex)}`);
        keys.set(mapKey({ key, ...(key_encoding && { key_encoding }) }), { key, ...(key_encoding && { key_encoding }), hash });
      }
      token = answer.next_page_token;
      if (keys.size > count || (token && keys.size === before)) throw new Error('the keys of some buckets do not end');
    }
  }
  return keys;
}

// Drops what only the client has, and leaves the keys of what it lacks. Returns how many it dropped.
function drop(held: Mendable, keys: Map<string, { hash: Hash }>, entries: Entry[]): number {
  const extra: string[] = [];
  for (const [key, hash] of entries) {
    const theirs = keys.get(key);
    if (!theirs) extra.push(key);
    else if (theirs.hash === hash) keys.delete(key);
  }
  for (const key of extra) held.mend(key);
  return extra.length;
}

// Reads resources by their keys, as many at once as fit into a URL.
async function read(asking: Asking, keys: Map<string, Named>): Promise<void> {
  for (const encoded of [false, true]) {
    const wanted = [...keys.values()].filter(({ key_encoding }) => !!key_encoding === encoded);
    for (let from = 0; from < wanted.length; ) {
      const query = new URLSearchParams(encoded ? { key_encoding: 'base64' } : {});
      let to = from;
      for (let length = 0; to < Math.min(wanted.length, from + keysAtOnce); to++) {
        const { key } = wanted[to]!;
        length += encodeURIComponent(key).length + 5;
        if (length > maxQueryLength && to > from) break;
        query.append('key', key);
      }
      const answer = await asking.ask('/resources', query);
      const n = Number((JSON.parse(answer) as { read?: unknown }).read);
      if (!(Number.isInteger(n) && n >= 1 && n <= to - from)) throw new Error(`${n} of ${to - from} keys were read`);
      const texts = elementsOf(answer, 'resources');
      if (texts.length > n) throw new Error(`${texts.length} resources of ${n} keys`);
      for (const text of texts) asking.take(text);
      from += n;
    }
  }
}

/** Waits, and throws if the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let end = () => {};
  const timer = setTimeout(() => end(), ms);
  await new Promise<void>((resolve) => {
    end = resolve;
    signal.addEventListener('abort', end);
  });
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
  signal.throwIfAborted();
}
