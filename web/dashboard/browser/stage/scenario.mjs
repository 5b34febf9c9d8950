import assert from 'node:assert/strict';
import { test } from '../../../nodetest/only.mjs';
import { shared } from './shared.mjs';
import { Visitor } from './visitor.mjs';

/**
 * A test with a browser. play gets a stage:
 *   visitor(options)  a new visitor with a separate browser
 *   own(thing)        thing.stop() is called at the end
 * It also fails if any page logged an error, violated its policy, or sent a request to
 * another origin. Evidence of a failure is kept in failures/. If a renderer of Chromium
 * crashed, which happens about once in a thousand scenarios, it is played a second time.
 */
export function scenario(name, play, { timeout = 60_000, skip = false } = {}) {
  test(name, { timeout: 2 * timeout, skip }, async () => {
    const failure = await act(name, play);
    if (!failure) return;
    if (!failure.crashed) throw failure.error;
    console.error(`${name}: a renderer of Chromium crashed (${failure.error.message}), a second try`);
    const second = await act(name, play);
    if (second) throw second.error;
  });
}

/** Plays a scenario once. Returns nothing, or its error and whether a renderer crashed. */
async function act(name, play) {
  const { browser, proxy, strays } = await shared.chromium();
  const visitors = [],
    things = [];
  const stage = {
    async visitor(options) {
      const visitor = await Visitor.arrive(browser, { proxy, ...options });
      visitors.push(visitor);
      return visitor;
    },
    own(thing) {
      things.unshift(thing);
      return thing;
    },
  };
  try {
    await play(stage);
    for (const visitor of visitors) assert.deepEqual(visitor.complaints, [], 'what the pages complained of');
    assert.deepEqual(strays.splice(0), [], 'requests to other origins');
  } catch (error) {
    for (const visitor of visitors) console.error(`see ${await visitor.keep(name)}`);
    return { error, crashed: visitors.some((visitor) => visitor.crashed) };
  } finally {
    for (const visitor of visitors) await visitor.leave();
    for (const thing of things) await thing.stop();
  }
}
