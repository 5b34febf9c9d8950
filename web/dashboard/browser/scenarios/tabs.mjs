import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { until } from '../stage/until.mjs';

// Without TLS a browser speaks HTTP/1.1, and opens at most six connections to an
// origin, for all tabs together.
const tabs = 8;

scenario('eight tabs at once share one stream, and the origin still answers', async (stage) => {
  const upstream = await shared.upstream();
  const gateway = await Gateway.start(upstream);
  stage.own({ stop: gateway.kill });
  const visitor = await stage.visitor();
  const open = await Promise.all(Array.from({ length: tabs }, () => visitor.open(`${gateway.origin}/#/watches/services`)));
  await Promise.all(open.map((tab) => tab.consistent({ rows: 1_000 })));

  assert.equal((await gateway.watch('services')).subscribers, 1, 'streams of this browser');
  for (const { page } of open) assert.equal(await page.evaluate(ask), 200);
  await upstream.put('services', 'for all', { name: 'seen by every tab' });
  await Promise.all(open.map((tab) => tab.consistent({ rows: 1_001 })));
  await upstream.delete('services', 'for all');
  await Promise.all(open.map((tab) => tab.consistent({ rows: 1_000 })));

  for (const { page } of open) await page.close();
  await until('the stream ends with the last tab', async () => (await gateway.watch('services')).subscribers === 0);
});

// Runs in the page: sends a plain request to the origin.
async function ask() {
  const response = await fetch('./healthz', { cache: 'no-store', signal: AbortSignal.timeout(5_000) });
  return response.status;
}
