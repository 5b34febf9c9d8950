import fc from 'fast-check';
import { bookmark, endOfSnapshot, hello, remove, reset, status, upsert } from './server.js';

/** One transaction: the keys that it sets, or deletes (undefined). restored: it replaces everything, in a new epoch. */
export interface Commit {
  restored: boolean;
  changes: Array<[key: string, value: unknown]>;
}

const keys = ['a', 'b/c', 'ü', '🌊', 'e\nf', 'g h'];

const change = fc.tuple(fc.constantFrom(...keys), fc.option(fc.oneof(fc.nat(9), fc.string()), { nil: undefined }));

export const history = fc.array(
  fc.record({ restored: fc.nat(7).map((n) => n === 0), changes: fc.array(change, { minLength: 1, maxLength: 4 }) }),
  { minLength: 1, maxLength: 12 },
);

interface Version {
  epoch: number;
  revision: number;
  /** Key → revision and value. */
  state: Map<string, [revision: number, value: unknown]>;
  /** Key → revision at which it was deleted, since the epoch began. */
  deleted: Map<string, number>;
}

/** A piece of a stream that is sent together, and the position after it if there is one. */
export type Piece = { text: string; position: string | undefined };

/**
 * A watch as the protocol's document describes it, with its whole history known in
 * advance: the simple model for the client.
 */
export class Upstream {
  readonly versions: Version[] = [];
  /** Of the next stream, which has only such keys. A position resumes only streams with the same prefix. */
  prefix = '';

  constructor(
    readonly watch: string,
    commits: Commit[],
    private readonly choose: (n: number) => number,
  ) {
    let version: Version = { epoch: 0, revision: firstOf(0), state: new Map(), deleted: new Map() };
    for (const commit of commits) this.versions.push((version = next(version, commit)));
  }

  /** The values of the watch in a version. */
  values(index: number): Map<string, unknown> {
    return new Map([...this.versions[index]!.state].map(([key, [, value]]) => [key, value]));
  }

  /** Returns the version that an id names, of a stream with any prefix, or -1. */
  find(id: string): number {
    const position = parse(id.split(',').find((one) => one.startsWith(`${this.watch}@`)));
    return this.versions.findIndex(({ epoch, revision }) => epoch === position?.epoch && revision === position.asOf);
  }

  /** A stream for a client with this position when the watch is at head, up to its last version. */
  *serve(position: string | undefined, head: number): Generator<Piece> {
    yield* this.#greet(position, this.versions[head]!);
    for (let at = head; at < this.versions.length - 1; ) {
      const to = Math.min(this.versions.length - 1, at + 1 + this.choose(3));
      yield* this.#follow(at, to);
      at = to;
    }
  }

  #count({ state }: Version): number {
    return [...state.keys()].filter((key) => this.#has(key)).length;
  }

  *#greet(position: string | undefined, version: Version): Generator<Piece> {
    const from = parse(position);
    if (from?.epoch === version.epoch && from.prefix === this.prefix) {
      yield* this.#catchUp(from.upTo, from.asOf, version);
      yield this.#piece(endOfSnapshot(this.watch, version.revision, this.#count(version), undefined, true), version);
      return;
    }
    yield* this.#snapshot(version, position ? 'epoch_changed' : 'initial');
  }

  *#snapshot(version: Version, reason: string): Generator<Piece> {
    yield { text: reset(this.watch, '', reason).replace('id: \n', ''), position: this.#position(version, 0) };
    yield* this.#catchUp(0, version.revision, version);
    yield this.#piece(endOfSnapshot(this.watch, version.revision, this.#count(version)), version);
  }

  // Deletes first, then upserts by rising revision; sometimes a position.
  *#catchUp(upTo: number, asOf: number, version: Version): Generator<Piece> {
    for (const [key, revision] of version.deleted) {
      if (revision > asOf && this.#has(key)) yield { text: remove(this.watch, key, revision), position: undefined };
    }
    const upserts = [...version.state].filter(([key, [revision]]) => revision > upTo && this.#has(key)).sort(([, [a]], [, [b]]) => a - b);
    for (const [i, [key, [revision, value]]] of upserts.entries()) {
      const whole = upserts[i + 1]?.[1][0] !== revision;
      yield {
        text: upsert(this.watch, key, revision, value),
        position: whole && this.choose(2) ? this.#position(version, revision) : undefined,
      };
    }
  }

  // From one version to a later one: change by change, or all at once.
  *#follow(from: number, to: number): Generator<Piece> {
    const [before, after] = [this.versions[from]!, this.versions[to]!];
    if (before.epoch !== after.epoch) yield* this.#snapshot(after, 'epoch_changed');
    else if (to === from + 1) yield this.#piece(this.#difference(before, after), after);
    else if (this.choose(2)) yield* this.#skip(before, after);
    else {
      // one flush, with the id at its end
      let text = '';
      for (let i = from; i < to; i++) text += this.#difference(this.versions[i]!, this.versions[i + 1]!);
      yield this.#piece(text, after);
    }
  }

  *#skip(before: Version, after: Version): Generator<Piece> {
    yield { text: status(this.watch, 'catching_up'), position: undefined };
    yield* this.#catchUp(before.revision, before.revision, after);
    yield this.#piece(bookmark(this.watch, after.revision) + status(this.watch, 'in_sync'), after);
  }

  #difference(before: Version, after: Version): string {
    let text = '';
    for (const [key, revision] of after.deleted) {
      if (revision > before.revision && this.#has(key)) text += remove(this.watch, key, revision);
    }
    for (const [key, [revision, value]] of after.state) {
      if (revision > before.revision && this.#has(key)) text += upsert(this.watch, key, revision, value);
    }
    return text || bookmark(this.watch, after.revision);
  }

  #has(key: string): boolean {
    return key.startsWith(this.prefix);
  }

  #piece(text: string, version: Version): Piece {
    return { text, position: `${this.watch}@${this.#epoch(version)}-${version.revision}` };
  }

  #position(version: Version, upTo: number): string {
    return `${this.watch}@${this.#epoch(version)}-${upTo}/${version.revision}`;
  }

  #epoch({ epoch }: Version): string {
    return this.prefix ? `${epoch}.${this.prefix}` : String(epoch);
  }
}

function parse(position: string | undefined) {
  const [, epoch, prefix = '', upTo, asOf = upTo] = position?.match(/@(\d+)(?:\.(.+))?-(\d+)(?:\/(\d+))?$/) ?? [];
  return epoch === undefined ? undefined : { epoch: Number(epoch), prefix, upTo: Number(upTo), asOf: Number(asOf) };
}

/**
 * One response for all watches: pieces in any order, and ids that contain the position of
 * each watch; until it has one of this stream, that with which the client came.
 */
export function response(upstreams: Upstream[], id: string, heads: number[], choose: (n: number) => number): Uint8Array {
  const came = id.split(',').map((position): [string, string] => [position.split('@')[0]!, position]);
  const known = new Map(came.filter(([name]) => upstreams.some(({ watch }) => watch === name)));
  const open = upstreams.map((upstream, i) => upstream.serve(known.get(upstream.watch), heads[i]!));
  let text = `retry: 1\n\n${hello(
    upstreams.map(({ watch }) => watch),
    'resume',
  )}`;
  // After a piece without a position comes another piece of the same watch.
  for (let last: Generator<Piece> | undefined; open.length > 0; ) {
    const one = last ?? open[choose(open.length)]!;
    const { done, value: piece } = one.next();
    if (done) {
      open.splice(open.indexOf(one), 1);
      last = undefined;
      continue;
    }
    text += piece.text;
    if (piece.position) {
      known.set(piece.position.split('@')[0]!, piece.position);
      text = `${text.slice(0, -1)}id: ${[...known.values()].join()}\n\n`;
    }
    last = piece.position ? undefined : one;
    if (!choose(6)) text += ': heartbeat\n\n';
  }
  return new TextEncoder().encode(text);
}

// A new epoch begins at a lower revision, and no two epochs share one.
const firstOf = (epoch: number) => 100_000 - 1_000 * epoch;

function next(before: Version, { restored, changes }: Commit): Version {
  const version: Version = restored
    ? { epoch: before.epoch + 1, revision: firstOf(before.epoch + 1), state: new Map(), deleted: new Map() }
    : { epoch: before.epoch, revision: before.revision + 1, state: new Map(before.state), deleted: new Map(before.deleted) };
  for (const [key, value] of changes) {
    if (value !== undefined) {
      version.state.set(key, [version.revision, value]);
      version.deleted.delete(key);
    } else if (version.state.delete(key)) {
      version.deleted.set(key, version.revision);
    }
  }
  return version;
}
