import { RefusedError } from './errors.js';
import type { Ask, Tell } from './port_transport.js';
import type { DeleteEvent, Event, UpsertEvent } from './protocol.js';
import type { Changes } from './replica.js';
import type { Store } from './store.js';
import type { View } from './view.js';
import { watch, type WatchOptions, type Watches } from './watch.js';

const heartbeatMs = 15_000;

// A tab that does not answer so many heartbeats is gone, or frozen: a MessagePort
// does not say so. One that thaws finds its stream silent, and asks anew.
const patience = 4;

/**
 * Serves the tabs of a browser from one connection: to each it is a gateway that
 * speaks the protocol over a MessagePort. It is meant to live in a SharedWorker.
 *
 * A watch is followed for as long as any tab wants it. A tab always gets what the
 * hub holds as a snapshot first; that costs no network.
 */
export class Hub {
  #tide: Watches | undefined;
  readonly #users = new Map<string, number>(); // how many streams want a watch

  constructor(private readonly url: string | URL, private readonly options: Omit<WatchOptions, 'watches'> = {}) {}

  /** Serves a tab; returns what ends that, for when the tab is gone. */
  serve(port: MessagePort): () => void {
    const streams = new Map<number, TabStream>();
    const take = ({ data: { stream, query } }: MessageEvent<Ask>) => {
      if (query === 'alive') return streams.get(stream)?.answered();
      streams.get(stream)?.end();
      streams.delete(stream);
      if (query !== 'end') streams.set(stream, new TabStream(this, port, stream, new URLSearchParams(query)));
    };
    port.addEventListener('message', take as EventListener);
    port.start();
    return () => {
      port.removeEventListener('message', take as EventListener);
      for (const stream of streams.values()) stream.end();
      streams.clear();
    };
  }

  /** @internal */
  use(name: string, prefix: string): Store {
    this.#tide ??= watch(this.url, this.options);
    const store = this.#tide.add({ watch: name, prefix });
    this.#users.set(name, (this.#users.get(name) ?? 0) + 1);
    return store;
  }

  /** @internal */
  release(name: string): void {
    const users = (this.#users.get(name) ?? 0) - 1;
    if (users > 0) return void this.#users.set(name, users);
    this.#users.delete(name);
    this.#tide?.remove(name);
    if (this.#users.size > 0) return;
    this.#tide?.close(); // a refusal is not for ever: the next tab may come with another cookie
    this.#tide = undefined;
  }
}

/** One stream to one tab. */
class TabStream {
  readonly #names: string[] = [];
  readonly #leave: Array<() => void> = [];
  readonly #heart: ReturnType<typeof setInterval>;
  readonly #troubled = new Set<string>(); // watches that were said not to be in sync
  #events: Event[] = [];
  #batch = 0;
  #unanswered = 0;
  #ended = false;

  constructor(private readonly hub: Hub, private readonly port: MessagePort, private readonly stream: number, query: URLSearchParams) {
    const names = query.getAll('watch');
    this.#heart = setInterval(() => this.#beat(), heartbeatMs);
    this.#add({ type: 'hello', heartbeat_ms: heartbeatMs, watches: names.map((watch) => ({ watch, mode: 'snapshot' })) });
    try {
      for (const name of names) this.#follow(name, query.get(`prefix.${name}`) ?? '');
    } catch (error) { // another tab follows the watch with another prefix
      this.#refuse(new RefusedError(400, { type: 'about:blank', title: 'Bad Request', status: 400, detail: String(error) }, undefined));
    }
  }

  answered(): void {
    this.#unanswered = 0;
  }

  #beat(): void {
    if (++this.#unanswered > patience) return this.end();
    this.#tell({});
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#heart);
    for (const leave of this.#leave) leave();
    for (const name of this.#names) this.hub.release(name);
  }

  #follow(name: string, prefix: string): void {
    const store = this.hub.use(name, prefix);
    this.#names.push(name);
    let first = true;
    this.#leave.push(store.subscribe((view, changes) => {
      this.#show(name, view, first ? { ...changes, replaced: view.revision !== '' } : changes);
      first = false;
    }));
    if (this.#ended) this.#leave.pop()?.(); // it was refused at once
  }

  #show(watch: string, view: View, changes: Changes): void {
    if (view.state === 'closed') return this.#refuse(view.error);
    if (changes.replaced) this.#snapshot(watch, view);
    else for (const key of changes.keys) this.#add(change(watch, key, view));
    this.#freshness(watch, view);
  }

  #snapshot(watch: string, { resources, revision }: View): void {
    this.#add({ type: 'reset', watch, reason: 'initial' });
    for (const resource of resources.values()) this.#add({ type: 'upsert', watch, ...resource });
    this.#add({ type: 'end_of_snapshot', watch, revision, count: resources.size });
  }

  #freshness(watch: string, { state, since, reason, revision }: View): void {
    if (state === 'in_sync' && !this.#troubled.delete(watch)) return;
    if (state !== 'in_sync') this.#troubled.add(watch);
    const told = state === 'in_sync' ? state : revision === '' ? 'priming' : 'stale';
    this.#add({ type: 'status', watch, state: told, since: new Date(since).toISOString(), reason });
  }

  // What the hub learnt in one go becomes one message, and one change in the tab.
  #add(event: Event): void {
    if (this.#events.push(event) === 1) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const events = this.#events.map((event) => JSON.stringify(event));
    this.#events = [];
    this.#tell({ events, id: `hub-${++this.#batch}` });
  }

  #refuse(error: Error | undefined): void {
    const [status, problem] = error instanceof RefusedError ? [error.status, error.problem] : [500, undefined];
    this.#tell({ refused: { status, problem } });
    this.end();
  }

  #tell(message: Omit<Tell, 'stream'>): void {
    if (!this.#ended) this.port.postMessage({ stream: this.stream, ...message } satisfies Tell);
  }
}

function change(watch: string, key: string, { resources, revision }: View): UpsertEvent | DeleteEvent {
  const resource = resources.get(key);
  if (resource) return { type: 'upsert', watch, ...resource };
  const bytes = key.startsWith('\udfff');
  return { type: 'delete', watch, revision, key: bytes ? key.slice(1) : key, ...(bytes && { key_encoding: 'base64' }) };
}
