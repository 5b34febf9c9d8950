import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { Front } from '../../stage/front.mjs';
import { Gateway } from '../../stage/gateway.mjs';
import { Guard } from '../../stage/guard.mjs';
import { clientFolder, Site } from '../../stage/site.mjs';
import { Upstream } from '../../stage/upstream.mjs';

const pages = fileURLToPath(new URL('./pages/', import.meta.url));

/** Whoever is signed in sees their own services. */
export const ownRows = { services: [{ role: 'user', read: 'value.owner == principal.name' }] };

/** Besides, everybody sees the nodes. */
export const openRows = { ...ownRows, nodes: [{ role: 'anyone', read: 'true' }] };

/** Gateways that ask for credentials, an upstream with a service of alice's and one of bob's, and a site in front of it all, with pages below /pages/. */
export class Place {
  static async open(stage, { replicas = 1, allow = ownRows, ...options } = {}) {
    const place = new Place();
    place.guard = await Guard.of('alice', 'bob');
    const upstream = (place.upstream = stage.own(await Upstream.start()));
    await upstream.fill('nodes', 50);
    for (const owner of ['alice', 'bob']) await place.put(owner, 'secret');
    place.gateways = await Promise.all(
      Array.from({ length: replicas }, () => Gateway.start(upstream, { guard: place.guard, allow, ...options })),
    );
    for (const gateway of place.gateways) stage.own({ stop: gateway.kill });
    place.front = new Front(() => place.gateways[0]);
    const site = stage.own(await Site.start({ '/client/': clientFolder, '/pages/': pages }, place.front.answer));
    place.origin = site.origin;
    return place;
  }

  /** Makes a service that only its owner sees. */
  put = (owner, name) => this.upstream.put('services', `${owner}/${name}`, { owner, text: `only ${owner} reads this` });
}

/** Signs in with the dashboard's login. */
export async function signIn(page, token) {
  await page.getByLabel('Token').fill(token);
  await page.locator('.login-form').getByRole('button', { name: 'Sign in' }).click();
}

/** Makes a token the session of a page, without the dashboard. */
export async function beginSession(page, token) {
  const status = await page.evaluate(
    async (token) => (await fetch('/v1/session', { method: 'POST', headers: { Authorization: `Bearer ${token}` } })).status,
    token,
  );
  assert.equal(status, 204);
}

/** Waits until the dashboard names its user. */
export const signedInAs = (page, name) => page.locator('.user').getByText(`Signed in as ${name}`).waitFor();

/** Errors that browsers log about refusals, and about streams that are cut off. */
export const refusals = [/status of 40[134]/, /ERR_INCOMPLETE_CHUNKED_ENCODING/];
