import { expect, test, vi } from 'vitest';
import { RefusedError } from '../src/errors.js';
import { Hub } from '../src/hub.js';
import { SharedWatch } from '../src/shared_watch.js';
import { watch } from '../src/watch.js';
import { pass } from './server.js';
import { sharing, url } from './sharing.js';

sharing();

// The garbage collector may take the store of a watch that nobody follows at any time.
class Reference {
  static all: Reference[] = [];
  constructor(private target: unknown) {
    Reference.all.push(this);
  }
  deref() {
    return this.target;
  }
  collect() {
    this.target = undefined;
  }
}

test('a refusal for too long a request does not need the stores of watches that nobody follows', async () => {
  vi.stubGlobal('WeakRef', Reference);
  const hub = new Hub(url);
  const idle = hub.follow({ watch: 'idle' });
  idle.subscribe('', () => {})();
  Reference.all.at(-1)!.collect();
  const long = hub.follow({ watch: 'long' });
  const end = long.subscribe('', () => {});
  expect(() => hub.refused(long, new RefusedError(414, undefined, undefined))).not.toThrow();
  end();
  hub.rest();
  await pass(1_000);
  vi.unstubAllGlobals();
});

test('a watch whose store is gone is not closed', () => {
  vi.stubGlobal('WeakRef', Reference);
  const tide = watch<Record<string, string>>(url);
  const shared = new SharedWatch(tide, { watch: 'w' });
  shared.subscribe('', () => {})();
  Reference.all.at(-1)!.collect();
  expect([shared.idle, shared.closed]).toEqual([true, false]);
  tide.close();
  vi.unstubAllGlobals();
});
