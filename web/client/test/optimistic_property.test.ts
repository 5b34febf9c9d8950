import fc from 'fast-check';
import { beforeEach, expect, test, vi } from 'vitest';
import { type Overlay, optimistic } from '../src/optimistic.js';
import type { Event } from '../src/protocol.js';
import type { Resource } from '../src/resource.js';
import { canonical } from '../src/spec.js';
import { Stores } from '../src/stores.js';

/** A request of the overlay, from when it is sent until it is answered. */
interface Sent {
  readonly key: string;
  readonly value: number | undefined; // undefined: a delete
  readonly revision: string | null | undefined;
  result?: () => void;
}

interface Version {
  readonly revision: number;
  readonly key: string;
  readonly value: number | undefined;
}

/** A gateway whose requests, answers and stream are late by as much as the test likes. */
class Model {
  readonly stores = new Stores();
  readonly overlay: Overlay<number>;
  readonly sent: Sent[] = []; // not applied
  readonly answers: Sent[] = []; // applied, not answered
  readonly own = new Map<string, Set<number>>(); // the values that the user has written
  log: Version[] = [];
  epoch = 0;
  streamed = 0; // of the log
  known = new Map<string, Version>(); // the newest version of each key that the client was told of
  values = 0;
  shown = 0; // the revision that the client has
  noticed = 0; // the epoch that began with the last restore that took the client's revision back
  readonly misplaced = new Set<string>(); // keys of which an answer came from before a restore that the client cannot notice

  /** revision: of the upstream, whose resources are all gone. A restore then takes it back. */
  constructor(public revision: number) {
    const store = this.stores.add(canonical('w'));
    this.snapshot();
    this.overlay = optimistic(store as never, {
      put: (_, key, value: number, { revision }) => this.#send({ key, value, revision }) as never,
      delete: (_, key, { revision }) => this.#send({ key, value: undefined, revision }) as never,
    });
  }

  // The upstream as a whole, or up to a place of its log.
  state(upTo = this.log.length): Map<string, Version> {
    const state = new Map<string, Version>();
    for (const version of this.log.slice(0, upTo)) state.set(version.key, version);
    return state;
  }

  #send(sent: Omit<Sent, 'result'>): Promise<unknown> {
    const { epoch } = this;
    return new Promise((resolve, reject) => {
      this.sent.push({
        ...sent,
        result: () => {
          const version = this.apply(sent);
          if (!version) return reject(new Error('conflict'));
          const told = version === true ? { key: sent.key, revision: this.revision, value: undefined } : version;
          this.answers.push({ ...sent, result: () => this.#tell(told, sent, epoch, resolve, reject) });
        },
      });
    });
  }

  lose = false;

  // The client cannot know the place of an answer to a request from before a restore.
  #tell(
    version: Version,
    sent: Omit<Sent, 'result'>,
    epoch: number,
    resolve: (result: unknown) => void,
    reject: (error: Error) => void,
  ): void {
    if (this.lose) return reject(new Error('lost'));
    if (sent.value === undefined) return resolve(true);
    const newer = version.revision > (this.known.get(sent.key)?.revision ?? 0);
    if (newer && epoch === this.epoch) this.known.set(sent.key, version);
    if (epoch !== this.epoch && epoch >= this.noticed) this.misplaced.add(sent.key);
    resolve({ key: sent.key, revision: String(version.revision), value: sent.value } satisfies Resource<number>);
  }

  apply({ key, value, revision }: Omit<Sent, 'result'>): Version | true | undefined {
    const now = this.state().get(key);
    const exists = now?.value !== undefined;
    if (revision === null && exists) return undefined;
    if (typeof revision === 'string' && !(exists && String(now.revision) === revision)) return undefined;
    if (value === undefined && !exists) return true;
    const version = { key, value, revision: ++this.revision };
    this.log.push(version);
    return version;
  }

  foreign(key: string, value: number | undefined): void {
    this.apply({ key, value, revision: undefined });
  }

  #feed(events: Event[], id: string): void {
    this.shown = Number(id.split('-')[1]);
    for (const event of events) this.stores.take(event);
    this.stores.commit(id);
    this.stores.publish();
  }

  stream(n: number): void {
    const versions = this.log.slice(this.streamed, this.streamed + n);
    this.streamed += versions.length;
    if (versions.length === 0) return;
    for (const version of versions) {
      if (version.revision > (this.known.get(version.key)?.revision ?? 0)) this.known.set(version.key, version);
    }
    this.#feed(versions.map(eventOf), `w@e${this.epoch}-${versions.at(-1)!.revision}`);
  }

  // The stream begins again at the head.
  snapshot(): void {
    this.stores.request();
    this.stores.open();
    const state = this.state();
    this.streamed = this.log.length;
    this.known = state;
    const events = [...state.values()].filter(({ value }) => value !== undefined).map(eventOf);
    const end: Event = { type: 'end_of_snapshot', watch: 'w', revision: String(this.revision), count: events.length };
    this.#feed([{ type: 'reset', watch: 'w', reason: 'expired' }, ...events, end], `w@e${this.epoch}-${this.revision}`);
  }

  // The upstream is restored: another order, with lower revisions.
  restore(): void {
    const state = [...this.state().values()].filter(({ value }) => value !== undefined);
    this.epoch++;
    if (state.length < this.shown) this.noticed = this.epoch;
    this.log = state.map(({ key, value }, i) => ({ key, value, revision: i + 1 }));
    this.revision = this.log.length;
    this.snapshot();
  }

  write(key: string, value: number | undefined, force: boolean): void {
    const own = this.own.get(key) ?? new Set();
    this.own.set(key, own.add(value ?? 0));
    const options = { force };
    const done = value === undefined ? this.overlay.delete(key, options) : this.overlay.put(key, value, options);
    done.catch(() => {});
  }

  /** What is shown is the newest that the client was told of, unless a write of the user, based on just that, has no answer. */
  check(): void {
    for (const key of keys) {
      if (!this.overlay.pending.has(key)) this.misplaced.delete(key);
      const shown = this.overlay.view.resources.get(key)?.value;
      const newest = this.known.get(key)?.value;
      if (shown === newest) continue;
      expect(this.overlay.pending.has(key), `${key} shows ${shown}, and ${newest} is newer`).toBe(true);
      expect(this.own.get(key), `${key} shows what nobody wrote`).toContain(shown ?? 0);
      if (this.misplaced.has(key)) continue; // the revision of the answer looks like a newer one
      const based = this.based.get(key)!;
      expect(based.has(newest ?? 0), `${key} shows ${shown} over ${newest}, on which it is not based`).toBe(true);
    }
  }

  // What the unconfirmed writes to a key are based on: what was shown when the first was made, and each other.
  readonly based = new Map<string, Set<number>>();

  note(key: string, value: number | undefined): void {
    const before = this.overlay.pending.has(key)
      ? this.based.get(key)!
      : new Set([(this.stores.get('w')!.resources.get(key)?.value as number) ?? 0]);
    this.based.set(key, before.add(value ?? 0));
  }
}

const keys = ['a', 'b'];

const eventOf = ({ key, value, revision }: Version): Event =>
  value === undefined
    ? { type: 'delete', watch: 'w', key, revision: String(revision) }
    : { type: 'upsert', watch: 'w', key, revision: String(revision), value };

const flush = () => vi.advanceTimersByTimeAsync(0);

const key = fc.constantFrom(...keys);
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('write' as const), key, gone: fc.boolean(), force: fc.constant(false) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('foreign' as const), key, gone: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('apply' as const), at: fc.nat(5) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('answer' as const), at: fc.nat(5), lose: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('stream' as const), n: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('snapshot' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restore' as const) }) },
);

beforeEach(() => void vi.useFakeTimers());

async function run(model: Model, one: typeof action extends fc.Arbitrary<infer A> ? A : never): Promise<void> {
  if (one.type === 'write' || one.type === 'foreign') {
    const value = one.gone ? undefined : ++model.values;
    if (one.type === 'foreign') return model.foreign(one.key, value);
    model.note(one.key, value);
    model.write(one.key, value, one.force);
  } else if (one.type === 'apply') model.sent.splice(one.at % (model.sent.length || 1), 1)[0]?.result?.();
  else if (one.type === 'answer') {
    model.lose = one.lose && one.at === 0;
    model.answers.splice(one.at % (model.answers.length || 1), 1)[0]?.result?.();
  } else if (one.type === 'stream') model.stream(one.n);
  else if (one.type === 'snapshot') model.snapshot();
  else model.restore();
  await flush();
}

test('never hides a later value that was confirmed, and ends with what the upstream has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(0, 5), fc.array(action, { maxLength: 30 }), async (revision, actions) => {
      const model = new Model(revision);
      for (const one of actions) {
        await run(model, one);
        model.check();
      }
      model.lose = false;
      while (model.sent.length + model.answers.length > 0) {
        model.sent.splice(0).forEach((one) => one.result?.());
        model.answers.splice(0).forEach((one) => one.result?.());
        await flush();
      }
      model.stream(1_000);
      await vi.advanceTimersByTimeAsync(11_000); // for those that a restored upstream does not have
      expect(model.overlay.pending.size).toBe(0);
      const state = [...model.state().values()].filter(({ value }) => value !== undefined).map(({ key, value }) => [key, value]);
      expect(new Map([...model.overlay.view.resources].map(([key, { value }]) => [key, value]))).toEqual(new Map(state as never));
      model.overlay.close();
    }),
    { numRuns: 5_000 },
  );
});
