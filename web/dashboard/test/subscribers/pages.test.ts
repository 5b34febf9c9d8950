import type { Subscriber, Subscribers } from '@watchtide/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Pages } from '../../src/subscribers/pages';

const row = (id: number) => ({ id: String(id) }) as Subscriber;

/** What a gateway answers that has these subscribers, in order of their ids. */
function answer(ids: readonly number[], { after, limit }: { after: string; limit: number }): Subscribers {
  const rest = ids.filter((id) => after === '' || id > Number(after));
  const listed = rest.slice(0, limit);
  const next = rest.length > limit ? { next: String(listed.at(-1)) } : {};
  return { subscribers: listed.map(row), ...next } as Subscribers;
}

const start = (ids: readonly number[], limit: number) =>
  new Pages([{ after: '', limit, rows: [], next: undefined }]).with({ after: '', limit }, answer(ids, { after: '', limit }));

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);
const shown = (pages: Pages) => pages.pages.flatMap(({ rows }) => rows.map(({ id }) => Number(id)));

describe('the pages of a list', () => {
  it('have every subscriber once and in order, wherever the user scrolls', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 3000 }),
        fc.integer({ min: 1, max: 300 }),
        fc.array(fc.nat({ max: 3000 }), { maxLength: 5 }),
        (n, limit, places) => {
          const ids = upTo(n);
          let pages = start(ids, limit);
          for (const place of places.map((at) => Math.min(at, n - 1)).filter((at) => at >= 0)) {
            while (!pages.at(place)) {
              const wanted = pages.wanted(place)!;
              pages = pages.with(wanted, answer(ids, wanted));
            }
            expect(pages.at(place)!.id).toBe(String(place));
          }
          expect(shown(pages)).toEqual(upTo(pages.loaded));
          expect(pages.complete).toBe(pages.loaded === n);
        },
      ),
    );
  });
  it('show none twice while subscribers leave and their pages are refreshed', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 999 }), fc.nat({ max: 999 })), { maxLength: 30 }), (steps) => {
        let ids = upTo(1000);
        let pages = start(ids, 100);
        for (const [left, place] of steps) {
          ids = ids.filter((id) => id !== left);
          const wanted = pages.wanted(Math.min(place, pages.loaded - 1 + (place % 2)));
          if (wanted) pages = pages.with(wanted, answer(ids, wanted));
          const all = shown(pages);
          expect(new Set(all).size).toBe(all.length);
          expect(all).toEqual(all.toSorted((a, b) => a - b));
        }
      }),
    );
  });
  it('end where nothing follows any more', () => {
    let ids = upTo(1000);
    let pages = start(ids, 100);
    for (const place of [150, 350, 550]) pages = pages.with(pages.wanted(place)!, answer(ids, pages.wanted(place)!));
    ids = upTo(50);
    pages = pages.with({ after: '', limit: 100 }, answer(ids, { after: '', limit: 100 }));
    expect([pages.loaded, pages.complete]).toEqual([50, true]);
  });
  it('ignore an answer that nobody waits for any more', () => {
    const pages = start(upTo(1000), 100);
    expect(pages.with({ after: '777', limit: 100 }, answer(upTo(1000), { after: '777', limit: 100 }))).toBe(pages);
  });
});
