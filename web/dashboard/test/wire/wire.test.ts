// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { StreamRequest } from '../../src/wire/request';
import { troubleOf } from '../../src/wire/trouble';
import { Wire } from '../../src/wire/wire';
import { FakeStream, frames, hello, upsert } from './gateway';

const request: StreamRequest = { watches: ['notes'], prefix: '', format: 'sse', position: '' };
let stream: FakeStream;
let wire: Wire;

beforeEach(() => {
  vi.useFakeTimers();
  stream = new FakeStream();
  vi.stubGlobal('fetch', stream.fetch);
  wire = new Wire();
});
afterEach(() => {
  wire.disconnect();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function connected(to: Partial<StreamRequest> = {}): Promise<void> {
  wire.connect({ ...request, ...to });
  await frames();
}

const seen = () => wire.connection().kept.frames.map(({ type, id, raw, bytes }) => [type, id, raw, bytes]);

describe('a connection', () => {
  it('keeps the bytes of the wire unchanged', async () => {
    await connected();
    expect(wire.connection()).toMatchObject({ state: 'open', status: '200 OK', headers: [['content-type', 'text/event-stream']] });
    await stream.write('retry: 1717\n\n: heartbeat\n');
    await stream.write(`\n${upsert('ä', 'id: notes@a-7\n')}`);
    expect(seen()).toEqual([
      ['retry', '', 'retry: 1717\n\n', 13],
      [`comment`, '', ': heartbeat\n\n', 13],
      ['upsert', 'notes@a-7', upsert('ä', 'id: notes@a-7\n'), upsert('ä', 'id: notes@a-7\n').length + 1],
    ]);
    expect(wire.connection().position).toBe('notes@a-7');
  });

  it('measures the time since the previous frame, or since the response began', async () => {
    await connected();
    await stream.write(hello);
    await vi.advanceTimersByTimeAsync(950);
    await stream.write(upsert('a') + upsert('b'));
    expect(wire.connection().kept.frames.map(({ after }) => Math.round(after))).toEqual([50, 1000, 0]);
  });

  it('sends the request', async () => {
    await connected({ watches: ['notes', 'a b'], prefix: 'x/', format: 'ndjson', position: 'notes@a-7' });
    await stream.write('{"type":"hello"}\n{"type":"position","id":"notes@a-8"}\n');
    const [{ url, headers }] = stream.asked as [FakeStream['asked'][0]];
    expect(url.pathname + url.search).toBe('/v1/events?watch=notes&watch=a+b&prefix.notes=x%2F&prefix.a+b=x%2F');
    expect([headers.get('Accept'), headers.get('Last-Event-ID')]).toEqual(['application/x-ndjson', 'notes@a-7']);
    expect([seen().length, wire.connection().position]).toEqual([2, 'notes@a-8']);
  });

  it('notifies once per frame of the screen, however much arrives', async () => {
    await connected();
    let told = 0;
    wire.subscribe(() => told++);
    await stream.write(Array.from({ length: 20_000 }, (_, i) => upsert(`k${i}`)).join(''));
    expect(told).toBeLessThanOrEqual(4);
    const { kept } = wire.connection();
    expect([kept.frames.length, kept.dropped, kept.types.get('upsert')]).toEqual([5000, 15_000, 20_000]);
  });

  it('is empty after a restart', async () => {
    await connected();
    await stream.write(hello);
    const { signal } = stream;
    await connected();
    expect(signal?.aborted).toBe(true);
    expect([seen(), wire.connection().state]).toEqual([[], 'open']);
  });
});

describe('its end', () => {
  it.each([
    ['ended', 'closed', () => stream.end(), 'the gateway ended the stream'],
    ['lost', 'offline', () => stream.break('network error'), 'network error'],
  ])('is %s, with what was left of it', async (state, trouble, happen, reason) => {
    await connected();
    await stream.write(`${hello}event: ups`);
    await happen();
    expect(wire.connection()).toMatchObject({ state, reason });
    expect(seen().at(-1)).toEqual(['cut', '', 'event: ups', 10]);
    expect(troubleOf(wire.connection(), Date.now())).toMatchObject({ state: trouble, reason });
  });

  it('is reported with the reason of the gateway', async () => {
    await connected();
    await stream.write('event: goodbye\ndata: {"type":"goodbye","reason":"draining","retry_ms":4210}\n\n');
    await stream.end();
    expect(wire.connection()).toMatchObject({ state: 'ended', reason: 'the gateway ended the stream (draining)' });
  });

  it('is a refusal, with the text of the problem', async () => {
    stream.answer = new Response('{"detail":"there is no watch"}', { status: 404, statusText: 'Not Found' });
    await connected();
    expect(wire.connection()).toMatchObject({ state: 'refused', status: '404 Not Found', reason: 'there is no watch' });
    expect(troubleOf(wire.connection(), Date.now())).toBeUndefined();
  });

  it('is not reported if the user disconnected', async () => {
    await connected();
    wire.disconnect();
    await frames();
    expect([wire.connection().state, stream.signal?.aborted]).toEqual(['left', true]);
    expect(troubleOf(wire.connection(), Date.now())).toBeUndefined();
  });

  it('comes when the tab was hidden for 30 s, and not before', async () => {
    const hidden = vi.spyOn(document, 'hidden', 'get');
    const show = (shown: boolean) => {
      hidden.mockReturnValue(!shown);
      document.dispatchEvent(new Event('visibilitychange'));
    };
    await connected();
    show(false);
    await vi.advanceTimersByTimeAsync(29_900);
    show(true);
    await vi.advanceTimersByTimeAsync(60_000);
    show(false);
    await vi.advanceTimersByTimeAsync(29_900);
    expect(wire.connection().state).toBe('open');
    await vi.advanceTimersByTimeAsync(200);
    expect([wire.connection().state, stream.signal?.aborted]).toEqual(['hidden', true]);
    expect(troubleOf(wire.connection(), Date.now())).toMatchObject({ reason: 'this tab was hidden for 30 s' });
    hidden.mockRestore();
  });
});

it('reports trouble if nothing arrives for two heartbeats', async () => {
  await connected();
  await stream.write(hello);
  const now = Date.now();
  expect(troubleOf(wire.connection(), now + 29_000)).toBeUndefined();
  expect(troubleOf(wire.connection(), now + 31_000)).toMatchObject({
    state: 'offline',
    reason: 'nothing was received, although there is a heartbeat every 15 s',
  });
});

it('can be cleared while it continues', async () => {
  await connected();
  await stream.write(hello + upsert('a'));
  wire.clear();
  await frames();
  expect(wire.connection().kept).toMatchObject({ frames: [], bytes: 0, dropped: 0 });
  await stream.write(upsert('b'));
  expect(wire.connection().kept.frames.map(({ number }) => number)).toEqual([3]);
});
