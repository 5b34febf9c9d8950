import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { indexOf, newest, play, step, tick } from '../../src/life/player';

const ids = ['d', 'c', 'b', 'a']; // the newest first

describe('the player', () => {
  it('steps back and forth, and not beyond the ends', () => {
    const older = step(ids, newest, -1);
    expect(indexOf(ids, older)).toBe(1);
    expect(indexOf(ids, step(ids, older, -9))).toBe(3);
    expect(step(ids, older, 1)).toEqual(newest);
  });
  it('plays from the oldest to the newest, and stops there', () => {
    let place = play(ids, newest);
    const shown = [];
    for (let i = 0; place.playing && i < 9; i++) {
      shown.push(ids[indexOf(ids, place)]);
      place = tick(ids, place);
    }
    expect(shown).toEqual(['a', 'b', 'c']);
    expect(place).toEqual(newest);
  });
  it('stays at a version when newer ones come, and goes with them if it is at the newest', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 5 }), (at, more) => {
        const place = step(ids, newest, -at);
        const later = [...Array.from({ length: more }, (_, i) => `new${i}`), ...ids];
        expect(later[indexOf(later, place)]).toBe(at === 0 ? later[0] : ids[at]);
      }),
    );
  });
  it('has nothing to show of nothing', () => {
    expect(step([], newest, 1).id).toBeUndefined();
    expect(tick([], play([], newest))).toEqual(newest);
  });
});
