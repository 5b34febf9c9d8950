import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WirePage } from '../../src/wire/WirePage';
import { FakeStream, frames, hello, upsert } from './gateway';

let stream: FakeStream;

beforeEach(async () => {
  vi.useFakeTimers();
  stream = new FakeStream();
  vi.stubGlobal('fetch', stream.fetch);
  // The sizes that the list of rows needs.
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(340);
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(34);
  location.hash = '#/stream/notes';
  render(<WirePage watch="notes" />);
  await act(frames);
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  location.hash = '';
});

const write = (text: string) => act(() => stream.write(text));
const button = (name: string | RegExp) => screen.getByRole('button', { name });
const press = (name: string | RegExp) =>
  act(async () => {
    fireEvent.click(button(name));
    await frames();
  });
const rows = () => [...document.querySelectorAll('[data-event]')].map((row) => row.textContent);

describe('the list', () => {
  it('shows the frames and their subjects', async () => {
    await write(`retry: 1717\n\n${hello}${upsert('a/b', 'id: notes@e-7\n')}: heartbeat\n\n`);
    expect(rows()).toEqual([
      'retry13 B50 ms',
      'hellonotes106 B0 ms',
      expect.stringMatching(/^upsertnotesa\/bnotes@e-7\d+ B0 ms$/),
      'comment13 B0 ms',
    ]);
    expect(document.querySelector('.answer')?.textContent).toContain('2 events, 238 B');
  });

  it('shows the bytes of a frame, and is paused for reading', async () => {
    await write(hello);
    await press(/^hello ?notes/);
    expect(screen.getByLabelText('Frame 1').textContent).toBe(hello.replaceAll('\n', '↵\n'));
    await write(upsert('a'));
    expect(rows().length).toBe(1);
    expect(button('Pause').getAttribute('aria-pressed')).toBe('true');
    await press(/1 newer/);
    expect(rows().length).toBe(2);
    expect(screen.queryByText(/newer/)).toBeNull();
  });

  it('is paused and emptied by buttons', async () => {
    await press('Pause');
    await write(hello);
    expect(rows()).toEqual([]);
    await press('Pause');
    expect(rows().length).toBe(1);
    await press('Clear');
    expect(rows()).toEqual([]);
    expect(screen.getByText('Nothing yet.')).toBeTruthy();
  });

  it('hides types, which are still counted', async () => {
    await write(hello + upsert('a') + upsert('b'));
    await press('upsert 2');
    expect(rows().map((text) => text?.slice(0, 5))).toEqual(['hello']);
    await write(upsert('c'));
    expect(button('upsert 3').getAttribute('aria-pressed')).toBe('false');
    await press('upsert 3');
    expect(rows().length).toBe(4);
  });
});

describe('the request', () => {
  const fill = (name: RegExp, value: string) =>
    act(async () => {
      fireEvent.change(screen.getByLabelText(name), { target: { value } });
    });

  it('takes effect with the button, and is in the URL of the page', async () => {
    await fill(/Key prefix/, 'a/');
    await fill(/Format/, 'ndjson');
    expect(stream.asked.length).toBe(1);
    await press('Reconnect');
    expect(stream.asked[1]?.url.search).toBe('?prefix=a%2F');
    expect(location.hash).toBe('#/stream/notes?prefix=a%2F&format=ndjson');
  });

  it('is that of the examples, before it is sent', async () => {
    await fill(/From position/, 'notes@e-7');
    expect(document.querySelector('[data-example=curl] pre')?.textContent).toContain("-H 'Last-Event-ID: notes@e-7'");
  });

  it('can resume a lost stream', async () => {
    await write(upsert('a', 'id: notes@e-7\n'));
    await act(() => stream.break('network error'));
    expect(screen.getByText(/network error/)).toBeTruthy();
    await press('Resume from the last position');
    expect(stream.asked[1]?.headers.get('Last-Event-ID')).toBe('notes@e-7');
    expect(screen.getByText('Connected')).toBeTruthy();
  });
});

it('announces the copied text', async () => {
  vi.stubGlobal('navigator', { clipboard: { writeText: () => Promise.resolve() } });
  await press('Copy the curl example');
  expect(screen.getAllByRole('status').map(({ textContent }) => textContent)).toContain('curl copied');
});

it('closes the connection with the page', () => {
  cleanup();
  expect(stream.signal?.aborted).toBe(true);
});
