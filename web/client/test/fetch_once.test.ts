import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { http } from '../src/http.js';
import { getSession } from '../src/session.js';
import { fetchTransport } from '../src/transport.js';

let servers: Server[];
let reached: string[];

const serve = (answer: Parameters<typeof createServer>[1]): Promise<string> =>
  new Promise((resolve) => {
    const server = createServer(answer);
    servers.push(server);
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });

const headers = { 'X-Api-Key': 'secret' };
const receiver = { alive() {}, event() {}, id() {}, retry() {}, flush() {} };
const signal = new AbortController().signal;
const requests: Array<[string, (url: string) => Promise<unknown>]> = [
  [
    'a stream',
    (url) => fetchTransport.read({ url: `${url}/v1/events?watch=w`, lastEventId: '', headers, credentials: 'omit', signal }, receiver),
  ],
  ['a resource', (url) => http(url, { headers }).get('w', 'k')],
  ['a session', (url) => getSession(url, { headers })],
];

beforeEach(() => {
  [servers, reached] = [[], []];
});

afterEach(() => {
  vi.unstubAllGlobals();
  for (const server of servers) server.close().closeAllConnections();
});

describe.each(requests)('a request for %s', (_, request) => {
  test('is not redirected, with its headers, to another server', async () => {
    const other = await serve(({ headers }, response) => {
      reached.push(String(headers['x-api-key']));
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end();
    });
    const url = await serve(({ url }, response) => void response.writeHead(302, { Location: other + url }).end());
    await expect(request(url)).rejects.toBeInstanceOf(TypeError);
    expect(reached).toEqual([]);
  });

  test('without an answer from another origin says what its gateway may not allow', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    vi.stubGlobal('location', { origin: 'https://page.test' });
    const message = 'Failed to fetch: no answer from https://gateway.test, or http.allowed_origins of the gateway lacks https://page.test';
    await expect(request('https://gateway.test')).rejects.toThrow(message);
    await expect(request('https://gateway.test')).rejects.toBeInstanceOf(TypeError);
    await expect(request('https://page.test')).rejects.toThrow(/^Failed to fetch$/);
    await expect(request('/gateway')).rejects.toThrow(/^Failed to fetch$/);
  });
});
