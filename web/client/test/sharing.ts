import { afterEach, beforeEach, expect, vi } from 'vitest';
import { type SharedOptions, serveTabs, watchShared } from '../src/shared.js';
import type { WatchSpec } from '../src/spec.js';
import type { Watches } from '../src/watch.js';
import { Browser, type Tab } from './browser.js';
import { endOfSnapshot, hello, pass, Server, snapshot } from './server.js';

export const url = 'http://gateway.test';

export let server: Server;
export let browser: Browser;
export let tides: Watches[];

/** Makes each test of a file start without tabs, in fake time. */
export function sharing(): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
    vi.spyOn(Math, 'random').mockImplementation(halves());
    server = new Server();
    browser = new Browser();
    vi.stubGlobal(
      'SharedWorker',
      browser.worker(() => serveTabs(url)),
    );
    tides = [];
  });

  afterEach(async () => {
    for (const tide of tides) tide.close();
    await pass(200_000); // the hub finds that there are no tabs left
    browser.close();
    vi.restoreAllMocks();
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });
}

// Names must differ, and waits must be predictable.
function halves(): () => number {
  let n = 0;
  return () => 0.5 + ++n / 1e9;
}

export function open(
  watches: SharedOptions['watches'] = ['w'],
  options: SharedOptions = {},
  tab = browser.tab(),
): { tab: Tab; tide: Watches } {
  const worker = () => new SharedWorker('tide.worker.js');
  const tide = tab.run(() => watchShared(url, { watches, worker, ...options }));
  tides.push(tide);
  return { tab, tide };
}

export const shown = (tide: Watches, spec: WatchSpec = 'w') =>
  `${tide.store(spec).state} ${[...tide.store(spec).resources].map(([key, { value }]) => `${key}=${value}`)}`;

/** The changes that a store reports from now on. */
export function told(tide: Watches, spec: WatchSpec = 'w'): string[] {
  const all: string[] = [];
  tide.store(spec).subscribe(({ state }, { replaced, keys }) => all.push(`${state}${replaced ? ' replaced' : ''} ${[...keys]}`));
  all.length = 0;
  return all;
}

export async function primed(options: SharedOptions = {}) {
  const first = open(['w'], options);
  await pass();
  server.last.accept(snapshot('w'));
  await pass();
  return first;
}

/** Answers a request of the hub that resumes from w@e-5. */
export async function resume(): Promise<void> {
  server.last.accept(hello(['w'], 'resume') + endOfSnapshot('w', 5, 1, 'w@e-5', true));
  await pass();
}
