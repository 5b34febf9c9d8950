import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { vi } from 'vitest';

/**
 * A browser in fake time, as far as tabs affect each other: each has its own window,
 * document and timers, and all share locks, channels and workers. A tab can be
 * hidden, frozen or killed, and then behaves as in Chrome.
 *
 * The asynchronous context identifies the tab that runs the code.
 */
export class Browser {
  readonly locks = new LockManager();
  readonly channels = new Set<Channel>();
  readonly tabs: Tab[] = [];
  readonly #workers = new Map<string, WorkerScope>();

  constructor() {
    const scheduled = timers();
    for (const [name, value] of Object.entries(scheduled)) vi.stubGlobal(name, value);
    vi.stubGlobal('addEventListener', (...args: Parameters<EventTarget['addEventListener']>) => current()?.addEventListener(...args));
    vi.stubGlobal('removeEventListener', (...args: Parameters<EventTarget['removeEventListener']>) =>
      current()?.removeEventListener(...args),
    );
    vi.stubGlobal('BroadcastChannel', channelsOf(this.channels));
    vi.stubGlobal('MessageChannel', PortPair);
    const { locks } = this;
    vi.stubGlobal('navigator', {
      get locks() {
        return locks.of(current());
      },
    });
    Object.defineProperty(globalThis, 'document', { configurable: true, get: () => (current() as Tab | undefined)?.document });
  }

  tab(): Tab {
    const tab = new Tab();
    this.tabs.push(tab);
    return tab;
  }

  /** Returns a constructor of SharedWorkers that run this script. */
  worker(script: () => void): new () => SharedWorker {
    const workers = this.#workers;
    return class extends EventTarget {
      readonly port: Port;

      constructor() {
        super();
        const pair = new PortPair();
        this.port = pair.port1;
        const known = workers.get('');
        const scope = known ?? new WorkerScope();
        workers.set('', scope);
        pair.port2.owner = scope;
        if (!known) scope.run(script);
        scope.do(() => scope.dispatchEvent(Object.assign(new Event('connect'), { ports: [pair.port2] })));
      }
    } as unknown as new () => SharedWorker;
  }

  close(): void {
    Reflect.deleteProperty(globalThis, 'document');
    vi.unstubAllGlobals();
  }
}

/** A tab or a worker. */
class Scope extends EventTarget {
  state: 'running' | 'frozen' | 'gone' = 'running';
  readonly #waiting: Array<() => void> = [];

  run<T>(f: () => T): T {
    return context.run(this, f);
  }

  /** Runs a task, or delays it while frozen. */
  do(task: () => void): void {
    if (this.state === 'running') this.run(task);
    else if (this.state === 'frozen') this.#waiting.push(task);
  }

  protected wake(): void {
    for (const task of this.#waiting.splice(0)) this.do(task);
  }

  /** Returns when a timer that is due at this time fires here, in ms. */
  dueAt(at: number): number {
    return at;
  }
}

class WorkerScope extends Scope {}

class Document extends EventTarget {
  hidden = false;
}

export class Tab extends Scope {
  readonly document = new Document();

  show(hidden = false): void {
    this.document.hidden = hidden;
    this.do(() => this.document.dispatchEvent(new Event('visibilitychange')));
  }

  hide(): void {
    this.show(true);
  }

  /** Stops everything in it. quietly: without an event. */
  freeze(quietly = false): void {
    if (!quietly) this.do(() => this.document.dispatchEvent(new Event('freeze')));
    queueMicrotask(() => {
      this.state = 'frozen';
    });
  }

  thaw(quietly = false): void {
    this.state = 'running';
    this.wake();
    if (!quietly) this.do(() => this.document.dispatchEvent(new Event('resume')));
  }

  /** Closes or crashes it, without an event. */
  kill(): void {
    this.state = 'gone';
    gone.dispatchEvent(new CustomEvent('gone', { detail: this }));
  }

  // Chrome fires the timers of a hidden page once a minute.
  override dueAt(at: number): number {
    return this.document.hidden ? Math.ceil(at / 60_000) * 60_000 : at;
  }
}

const context = new AsyncLocalStorage<Scope>();
const current = () => context.getStore();
const gone = new EventTarget();
setMaxListeners(0, gone);

function timers() {
  const { setTimeout, clearTimeout } = globalThis;
  type Handle = { id?: ReturnType<typeof setTimeout> };
  const start = (f: () => void, ms: number, every: boolean): Handle => {
    const scope = current();
    const handle: Handle = {};
    const next = () => {
      const at = scope?.dueAt(Date.now() + ms) ?? Date.now() + ms;
      handle.id = setTimeout(() => {
        if (!every) return due();
        if (scope?.state === 'gone') return;
        next();
        if (waiting) return; // a late one does not run twice
        waiting = true;
        due();
      }, at - Date.now());
    };
    const due = () => (scope ? scope.do(task) : task());
    const task = () => {
      waiting = false;
      f();
    };
    let waiting = false;
    next();
    return handle;
  };
  const stop = (handle?: Handle) => clearTimeout(handle?.id);
  return {
    setTimeout: (f: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => start(() => f(...args), ms, false),
    setInterval: (f: () => void, ms = 0) => start(f, ms, true),
    clearTimeout: stop,
    clearInterval: stop,
  };
}

/** Delivers a message as a task of its receiver. */
function deliver(to: EventTarget & { owner: Scope | undefined }, message: unknown): void {
  const data = structuredClone(message);
  const dispatch = () => to.dispatchEvent(new MessageEvent('message', { data }));
  queueMicrotask(() => (to.owner ? to.owner.do(dispatch) : dispatch()));
}

type Channel = EventTarget & { readonly name: string; owner: Scope | undefined };

function channelsOf(all: Set<Channel>) {
  return class extends EventTarget implements Channel {
    owner = current();

    constructor(readonly name: string) {
      super();
      all.add(this);
      gone.addEventListener('gone', (event) => {
        if ((event as CustomEvent).detail === this.owner) all.delete(this);
      });
    }

    postMessage(message: unknown): void {
      if (this.owner?.state === 'gone') return;
      if (!all.has(this)) throw new DOMException('the channel is closed', 'InvalidStateError');
      const post = () => {
        for (const channel of all) if (channel !== this && channel.name === this.name) deliver(channel, message);
      };
      this.owner ? this.owner.do(post) : post(); // a frozen tab sends nothing
    }

    close(): void {
      all.delete(this);
    }
  };
}

class Port extends EventTarget {
  owner = current();
  other!: Port;
  #waiting: unknown[] | undefined = [];

  postMessage(message: unknown): void {
    this.other.receive(message);
  }

  receive(message: unknown): void {
    if (this.#waiting) this.#waiting.push(message);
    else deliver(this, message);
  }

  close(): void {
    this.other.dispatchEvent(new Event('close'));
  }

  start(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const message of waiting) deliver(this, message);
  }
}

class PortPair {
  readonly port1 = new Port();
  readonly port2 = new Port();

  constructor() {
    this.port1.other = this.port2;
    this.port2.other = this.port1;
  }
}

interface LockRequest {
  readonly owner: Scope | undefined;
  readonly callback: () => unknown;
  readonly settle: { resolve: (value: unknown) => void; reject: (reason: unknown) => void };
}

/** Exclusive locks (W3C Web Locks API), with `signal` and `steal`. */
class LockManager {
  readonly held = new Map<string, LockRequest>();
  readonly #queues = new Map<string, LockRequest[]>();

  constructor() {
    gone.addEventListener('gone', (event) => this.#release((event as CustomEvent<Scope>).detail));
  }

  of(owner: Scope | undefined): Pick<globalThis.LockManager, 'request'> {
    const request = (name: string, { signal, steal }: LockOptions, callback: () => unknown) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const asked: LockRequest = { owner, callback, settle: { resolve, reject } };
        const queue = this.#queue(name);
        signal?.addEventListener('abort', () => {
          if (!queue.includes(asked)) return; // it was granted: too late
          queue.splice(queue.indexOf(asked), 1);
          reject(signal.reason);
        });
        if (steal) {
          this.held.get(name)?.settle.reject(new DOMException('The lock was stolen', 'AbortError'));
          this.held.delete(name);
          queue.unshift(asked);
        } else {
          queue.push(asked);
        }
        this.#grant(name);
      });
    return { request } as Pick<globalThis.LockManager, 'request'>;
  }

  #queue(name: string): LockRequest[] {
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    return queue;
  }

  #grant(name: string): void {
    const next = this.held.has(name) ? undefined : this.#queue(name).shift();
    if (!next) return;
    this.held.set(name, next);
    const start = async () => {
      try {
        next.settle.resolve(await next.callback());
      } catch (error) {
        next.settle.reject(error);
      }
      if (this.held.get(name) !== next) return;
      this.held.delete(name);
      this.#grant(name);
    };
    queueMicrotask(() => (next.owner ? next.owner.do(start) : void start()));
  }

  #release(owner: Scope): void {
    for (const [name, queue] of this.#queues) {
      queue.splice(0, queue.length, ...queue.filter((asked) => asked.owner !== owner));
      if (this.held.get(name)?.owner !== owner) continue;
      this.held.delete(name);
      this.#grant(name);
    }
  }
}
