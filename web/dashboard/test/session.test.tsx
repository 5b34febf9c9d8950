import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

interface Request {
  readonly method: string;
  readonly path: string;
  readonly token: string | null;
}

/** The gateway: as whom it sees the page, and what it was asked. */
let cookie: { name: string; tag: string } | undefined;
let open = false; // who has no credential may see something
let refused = ''; // why the cookie is not accepted
let sessions = true; // the gateway has them
let provider: { name: string } | undefined; // with which users sign in
let down = false;
let requests: Request[] = [];
let reloads = 0;

// Loaded for each test, since a page knows only one user.
let page: typeof import('../src/session/SignedIn') & typeof import('../src/session/User') & typeof import('../src/gateway/session');

async function gateway(url: string | URL, { method = 'GET', headers, credentials }: RequestInit = {}): Promise<Response> {
  const { pathname } = new URL(url, document.baseURI);
  const token = new Headers(headers).get('Authorization');
  requests.push({ method, path: pathname, token });
  if (down) throw new TypeError('Failed to fetch');
  if (!sessions) return pathname === '/v1/session' ? new Response('', { status: 404 }) : Response.json({ watches: [] });
  if (credentials === 'omit') return Response.json({ name: '', issuer: '', mechanism: 'anonymous', login: provider });
  if (method === 'POST' && token === 'Bearer right') cookie = { name: 'alice', tag: 'a' };
  else if (method === 'POST' || refused) return unauthorized(refused || 'want a valid token');
  if (method === 'DELETE') cookie = undefined;
  if (method !== 'GET') return new Response(null, { status: 204 });
  if (pathname === '/v1/watches')
    return Response.json({ watches: cookie || open ? [{ name: 'w' }] : [] }, { headers: { Vary: 'Origin, Authorization, Cookie' } });
  return Response.json({ name: '', ...cookie, issuer: '', mechanism: cookie ? 'jwt' : 'anonymous' });
}

function unauthorized(detail: string): Response {
  const challenge = 'Bearer realm="watchtide", error="invalid_token"';
  return Response.json(
    { status: 401, title: 'Unauthorized', detail },
    { status: 401, headers: { 'Content-Type': 'application/problem+json', 'WWW-Authenticate': challenge } },
  );
}

const pass = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms));
const url = new URL('http://localhost:3000/v1/watches');

beforeEach(async () => {
  vi.useFakeTimers();
  [cookie, open, refused, sessions, provider, down, requests, reloads] = [undefined, false, '', true, undefined, false, [], 0];
  vi.stubGlobal('fetch', vi.fn(gateway));
  vi.spyOn(location, 'reload').mockImplementation(() => {
    reloads++;
  });
  vi.resetModules();
  page = {
    ...(await import('../src/session/SignedIn')),
    ...(await import('../src/session/User')),
    ...(await import('../src/gateway/session')),
  };
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function load() {
  render(
    <page.SignedIn>
      <page.User />
      <p>the data</p>
    </page.SignedIn>,
  );
  await pass();
}

const shown = () => document.body.textContent ?? '';
const press = async (name: string) => {
  fireEvent.click(screen.getByRole('button', { name }));
  await pass();
};

it('where there are no sessions, nothing is said of users', async () => {
  sessions = false;
  await load();
  expect(shown()).toBe('the data');
  await page.ask(url, {});
  expect(requests.map(({ path }) => path)).toEqual(['/v1/watches', '/v1/watches']); // nobody asks about sessions
});

it('a gateway that asks for a credential gets the login, and the token becomes a session', async () => {
  await load();
  expect(shown()).not.toContain('the data');
  fireEvent.change(screen.getByLabelText('Token'), { target: { value: ' Bearer right\n' } });
  await press('Sign in');
  expect(requests.at(-1)).toEqual({ method: 'POST', path: '/v1/session', token: 'Bearer right' });
  expect(reloads).toBe(1);
});

it('where users sign in with a provider, there is a button, which keeps the place', async () => {
  provider = { name: 'idp.example.com' };
  refused = 'the credential has expired';
  location.hash = '#/watches/orders?filter=a%26b';
  const assign = vi.spyOn(location, 'assign').mockImplementation(() => {});
  await load();
  await press('Sign in with idp.example.com');
  const to = new URL(assign.mock.calls[0]![0]);
  expect([to.pathname, to.searchParams.get('return')]).toEqual(['/v1/login', '/#/watches/orders?filter=a%26b']);
  location.hash = '';
});

it('without a provider, there is no such button', async () => {
  await load();
  expect(screen.queryByRole('button', { name: /^Sign in with/ })).toBeNull();
});

it('a wrong token is told, and another one may be tried', async () => {
  await load();
  fireEvent.change(screen.getByLabelText('Token'), { target: { value: 'wrong' } });
  await press('Sign in');
  expect(screen.getByRole('alert').textContent).toBe('Not signed in: want a valid token');
  expect(screen.getByRole('button', { name: 'Sign in' })).toHaveProperty('disabled', false);
  expect(reloads).toBe(0);
});

it('the login goes on by itself when the page around it has signed in', async () => {
  await load();
  cookie = { name: 'alice', tag: 'a' };
  await pass(3_000);
  expect(reloads).toBe(1);
});

it('says as whom one sees the data, and signs out', async () => {
  cookie = { name: 'alice', tag: 'a' };
  await load();
  expect(shown()).toContain('Signed in as alice');
  expect(shown()).toContain('the data');
  await press('Sign out');
  expect(requests.at(-1)!.method).toBe('DELETE');
  expect(reloads).toBe(1);
});

it('who may see something without a credential can still sign in', async () => {
  open = true;
  await load();
  expect(shown()).toContain('the data');
  expect(shown()).toContain('Not signed in');
  await press('Sign in');
  screen.getByLabelText('Token');
  await press('Cancel');
  expect(screen.queryByLabelText('Token')).toBeNull();
});

it('a gateway that does not answer is asked again', async () => {
  down = true;
  await load();
  expect(shown()).toContain('does not answer (Failed to fetch)');
  down = false;
  cookie = { name: 'alice', tag: 'a' };
  await pass(3_000);
  expect(shown()).toContain('the data');
});

it('a credential that is not accepted any more shows the login, and why', async () => {
  cookie = { name: 'alice', tag: 'a' };
  await load();
  refused = 'the credential has been revoked';
  await act(async () => {
    await page.ask(url, {}).catch(() => {});
  });
  expect(shown()).not.toContain('the data');
  expect(screen.getByRole('alert').textContent).toContain('The gateway says: the credential has been revoked.');
  screen.getByLabelText('Token');
  await pass(60_000);
  expect(reloads).toBe(0);
});

it('the login says nothing of a session that there never was', async () => {
  await load();
  screen.getByLabelText('Token');
  expect(screen.queryByRole('alert')).toBeNull();
});

it('a 401 of something in front of a gateway without sessions does not load the page again and again', async () => {
  sessions = false;
  await load();
  vi.stubGlobal(
    'fetch',
    vi.fn(async () => unauthorized('the proxy says no')),
  );
  await act(async () => {
    await page.ask(url, {}).catch(() => {});
  });
  expect(shown()).not.toContain('the data');
  expect(shown()).toContain('the proxy says no');
  vi.stubGlobal('fetch', vi.fn(gateway));
  await pass(60_000);
  expect(reloads).toBe(0);
});

it('one watch that is not for nobody in particular does not hide the others', async () => {
  open = true;
  await load();
  vi.stubGlobal(
    'fetch',
    vi.fn(async (url: string | URL, init: RequestInit) =>
      String(url).endsWith('/secret') ? unauthorized('there is no watch of that name') : gateway(url, init),
    ),
  );
  await act(async () => {
    await page.ask(new URL('http://localhost:3000/v1/watches/secret'), {});
  });
  expect(shown()).toContain('the data');
});

it('when somebody signs in elsewhere, a page of nobody in particular is loaded again', async () => {
  open = true;
  await load();
  cookie = { name: 'alice', tag: 'a' };
  let answered = false;
  void page.ask(url, {}).then(() => {
    answered = true;
  });
  await pass(60_000);
  expect([answered, reloads]).toEqual([false, 1]);
});

it('an answer for another user is not returned: the page is loaded again', async () => {
  cookie = { name: 'alice', tag: 'a' };
  await load();
  let answered = false;
  void page.ask(url, {}).then(() => {
    answered = true;
  });
  cookie = { name: 'bob', tag: 'b' };
  await pass(60_000);
  expect([answered, reloads]).toEqual([false, 1]);
});

it('a write is not made as another user', async () => {
  cookie = { name: 'alice', tag: 'a' };
  await load();
  cookie = { name: 'bob', tag: 'b' };
  requests = [];
  void page.ask(url, { method: 'PUT', body: '1' });
  await pass(60_000);
  expect(requests.map(({ method }) => method)).toEqual(['GET']);
  expect(reloads).toBe(1);
});

it('after a logout in another tab the page is loaded again', async () => {
  cookie = { name: 'alice', tag: 'a' };
  await load();
  cookie = undefined;
  void page.confirm();
  await pass(60_000);
  expect(reloads).toBe(1);
});

it('a page that the browser keeps shows nothing, and is loaded again when the user comes back', async () => {
  cookie = { name: 'alice', tag: 'a' };
  await load();
  const move = (type: string, persisted: boolean) => act(async () => void dispatchEvent(Object.assign(new Event(type), { persisted })));
  await move('pageshow', false);
  await move('pagehide', false); // it is not kept
  expect(shown()).toContain('the data');
  await move('pagehide', true);
  expect(shown()).toBe('');
  expect(reloads).toBe(0);
  await move('pageshow', true);
  expect(reloads).toBe(1);
});
