import type { Resource, View } from '@watchtide/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxSteps, Pending } from '../../src/resources/pending';

/** The store's side: the calls to a listener. */
class Source {
  readonly resources = new Map<string, Resource>();
  revision = 0;

  change(...keys: string[]) {
    this.revision++;
    for (const key of keys) this.resources.set(key, { key, revision: String(this.revision), value: this.revision });
    return { replaced: false, keys: new Set(keys) };
  }

  get view(): View {
    return { state: 'in_sync', since: 0, reason: '', resources: this.resources, revision: String(this.revision) };
  }
}

const everything = { replaced: true, keys: new Set<string>() };

describe('pending changes', () => {
  it('are one step with the last change of each key, unless kept apart', () => {
    const source = new Source();
    const pending = new Pending();
    for (const key of ['a', 'b', 'a']) pending.add(source.view, source.change(key), false);
    expect(pending.size).toBe(2);
    const flush = pending.rest();
    expect([...flush!.changes].map(([key, resource]) => [key, resource?.value])).toEqual([
      ['a', 3],
      ['b', 2],
    ]);
    expect(pending.empty).toBe(true);
  });

  it('are returned step by step if they are kept apart', () => {
    const source = new Source();
    const pending = new Pending();
    for (const key of ['a', 'b', 'a']) {
      const changes = source.change(key);
      pending.add(source.view, changes, true);
    }
    expect(pending.size).toBe(3);
    expect(pending.next()).toMatchObject({ revision: '1' });
    expect(pending.next()).toMatchObject({ revision: '2' });
    expect(pending.rest()).toMatchObject({ revision: '3' });
    expect(pending.rest()).toBeUndefined();
  });

  it('are bounded, whatever the number of changes', () => {
    const source = new Source();
    const pending = new Pending();
    for (let i = 0; i < 10_000; i++) {
      const changes = source.change(`k${i % 7}`);
      pending.add(source.view, changes, true);
    }
    expect(pending.size).toBeLessThanOrEqual(maxSteps + 7);
  });

  it('do not count a revision without a change as a step', () => {
    const source = new Source();
    const pending = new Pending();
    pending.add(source.view, source.change(), true);
    pending.add(source.view, source.change('a'), true);
    expect(pending.size).toBe(1);
    expect(pending.next()?.changes.size).toBe(1);
    expect(pending.empty).toBe(true);
  });

  it('lead to the current state, however they are returned', () => {
    const keys = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 });
    const step = fc.record({ kind: fc.constantFrom('put', 'put', 'delete', 'replace', 'take'), keys, apart: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const source = new Source();
        const pending = new Pending();
        let shown = new Map<string, Resource>();
        const show = (flush = pending.next()) => {
          if (!flush) return false;
          if (flush.all) shown = new Map(flush.all);
          for (const [key, resource] of flush.changes) resource ? shown.set(key, resource) : shown.delete(key);
          return true;
        };
        for (const { kind, keys, apart } of steps) {
          if (kind === 'take') show(apart ? pending.next() : pending.rest());
          if (kind === 'take') continue;
          const changes = source.change(...keys);
          if (kind === 'delete') for (const key of keys) source.resources.delete(key);
          pending.add(source.view, kind === 'replace' ? everything : changes, apart);
        }
        while (show());
        expect(shown).toEqual(source.resources);
        expect(pending.empty).toBe(true);
      }),
    );
  });
});
