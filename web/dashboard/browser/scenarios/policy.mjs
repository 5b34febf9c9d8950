import assert from 'node:assert/strict';
import { pages } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { until } from '../stage/until.mjs';

// Every scenario fails if a page reports a violation; this one visits all pages.
scenario('policy: every page is shown without a complaint, and with a strict policy', async (stage) => {
  const gateway = await shared.gateway();
  const visitor = await stage.visitor();
  for (const { hash, shows } of pages) {
    const tab = await visitor.open(`${gateway.origin}/${hash}`);
    await tab.page.locator(shows).first().waitFor();
    await tab.page.close();
  }
  const policy = (await fetch(`${gateway.origin}/`)).headers.get('Content-Security-Policy');
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe-/);
});

scenario('policy: violations are noticed', async (stage) => {
  const gateway = await shared.gateway();
  const { strays } = await shared.chromium();
  const visitor = await stage.visitor();
  const tab = await visitor.open(`${gateway.origin}/`);
  await tab.ready();
  await tab.page.evaluate(breakPolicy);
  const noticed = (what, pattern) => until(`notice ${what}`, () => visitor.complaints.some((text) => pattern.test(text)));
  await noticed('text that becomes code', /securitypolicyviolation: require-trusted-types-for/);
  await noticed('an inline style', /securitypolicyviolation: style-src/);
  await noticed('a request to another origin', /securitypolicyviolation: connect-src/);
  visitor.tolerate(/.*/);

  const stranger = await visitor.context.newPage();
  await stranger.goto('http://elsewhere.example/').catch(() => {});
  assert.ok(
    strays.some((url) => url.includes('elsewhere.example')),
    'what leaves this machine ends in the trap',
  );
  strays.length = 0;
});

// Runs in the page.
async function breakPolicy() {
  const style = document.createElement('style');
  style.append('body { color: red }');
  document.body.append(style);
  try {
    document.body.innerHTML = '<p>text that becomes code</p>';
  } catch {} // the policy forbids it
  await fetch('http://elsewhere.example/').catch(() => {});
}
