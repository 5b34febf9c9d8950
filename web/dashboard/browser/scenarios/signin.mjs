import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from '../stage/build.mjs';
import { listening } from '../stage/gateway.mjs';
import { freePort } from '../stage/port.mjs';
import { Process } from '../stage/process.mjs';
import { scenario } from '../stage/scenario.mjs';
import { refusals, signedInAs } from './access/place.mjs';

const example = fileURLToPath(new URL('../../../../examples/sign-in/watchtide.yaml', import.meta.url));

scenario('the sign-in of the dashboard goes through a provider and back to where it began, and leaves nothing behind', async (stage) => {
  const [gateway, provider] = await open(stage);
  const visitor = await stage.visitor();
  visitor.tolerate(...refusals, new RegExp(`^a request to ${provider}/authorize`));
  const { page } = await visitor.open(`${gateway}/#/watches/notes?sort=key`);
  const referrers = [];
  page.on('request', (request) => referrers.push(request.headers()['referer'] ?? ''));
  await page.getByRole('button', { name: 'Sign in with the development issuer' }).click();
  await page.getByRole('heading', { name: 'Development issuer' }).waitFor();
  const [pending] = await visitor.context.cookies();
  assert.deepEqual([pending.name, pending.httpOnly, pending.sameSite], ['watchtide-login', true, 'Lax']);
  await page.getByRole('button', { name: 'ann' }).click();

  await signedInAs(page, 'ann');
  assert.equal(page.url(), `${gateway}/#/watches/notes?sort=key`);
  const cookies = await visitor.context.cookies();
  assert.deepEqual(
    cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]),
    [['watchtide-session', true, 'Strict']],
  );
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.referrer]));
  assert.doesNotMatch(kept, /code=|state=|eyJ/);
  assert.deepEqual(
    referrers.filter((text) => /code=|state=|nonce=/.test(text) && !text.startsWith(provider)),
    [],
    'no address of a sign-in is sent on',
  );

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in with the development issuer' }).waitFor();
  assert.deepEqual(await visitor.context.cookies(), []);
});

scenario('a sign-in of another browser is refused with a page that leads back', async (stage) => {
  const [gateway, provider] = await open(stage);
  const [mallory, victim] = [await stage.visitor(), await stage.visitor()];
  for (const visitor of [mallory, victim]) visitor.tolerate(...refusals, new RegExp(`^a request to ${provider}/authorize`));
  const { page } = await mallory.open(`${gateway}/`);
  await page.getByRole('button', { name: 'Sign in with the development issuer' }).click();
  await page.getByRole('heading', { name: 'Development issuer' }).waitFor();
  const answer = await fetch(page.url(), { method: 'POST', body: new URLSearchParams({ user: 'ann' }), redirect: 'manual' });
  const stolen = answer.headers.get('location');
  assert.match(stolen, /\/v1\/login\/callback\?code=/);

  const tab = await victim.open(stolen);
  await tab.page.getByRole('alert').getByText('no sign-in of this browser is under way').waitFor();
  assert.deepEqual(await victim.context.cookies(), []);
  await tab.page.getByRole('link', { name: 'Back to the dashboard' }).click();
  await tab.page.getByRole('button', { name: 'Sign in with the development issuer' }).waitFor();
});

/** Starts the example: [the origin of the gateway, that of the provider]. */
async function open(stage) {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const [issuer, [provider]] = await Process.start(
    await build('examples/sign-in/issuer'),
    ['-listen', '127.0.0.1:0', '-callback', `${origin}/v1/login/callback`],
    (line) => /\blistening issuer=(\S+)/.exec(line)?.slice(1),
  );
  stage.own(issuer);
  const file = join(await mkdtemp(join(tmpdir(), 'watchtide-sign-in-')), 'watchtide.yaml');
  const configuration = await readFile(example, 'utf8');
  await writeFile(file, configuration.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`).replaceAll('http://127.0.0.1:9400', provider));
  const free = ['--grpc', '127.0.0.1:0', '--operations', '127.0.0.1:0'];
  const [gateway] = await Process.start(await build('cmd/gateway'), ['serve', '--config', file, ...free], listening);
  stage.own(gateway);
  return [origin, provider];
}
