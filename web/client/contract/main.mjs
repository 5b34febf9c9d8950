// Plays the scenarios in every runtime that is there. A runtime that is missing is skipped, and
// said to be. To play in one: node --test --test-name-pattern=Deno main.mjs
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { test } from '../../nodetest/only.mjs';
import { browsers, startSite } from './browsers.mjs';
import { Place } from './place.mjs';
import { runtimes } from './runtimes.mjs';

for (const { name, command, missing } of runtimes) {
  test(name, { skip: missing, timeout: 120_000 }, async (t) => {
    const place = await Place.open();
    t.after(() => place.close());
    const [program, ...args] = command;
    const child = promisify(execFile)(program, [...args, JSON.stringify(place.data)], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      timeout: 110_000,
    });
    const { stdout } = await child; // it ends, so nothing that the client has begun keeps it running
    await report(t, JSON.parse(stdout.trim().split('\n').at(-1)));
  });
}

for (const { name, play, missing } of browsers) {
  test(name, { skip: missing, timeout: 240_000 }, async (t) => {
    const site = await startSite();
    t.after(() => site.stop());
    const place = await Place.open([site.origin]);
    t.after(() => place.close());
    await report(t, await play(t, site, place));
  });
}

async function report(t, results) {
  assert.ok(Object.keys(results).length >= 10, 'all scenarios were played');
  for (const [name, error] of Object.entries(results)) await t.test(name, () => assert.equal(error, null));
}
