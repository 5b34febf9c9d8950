import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import type { HistoricChange } from '@watchtide/protocol';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FeedPage } from '../../src/life/FeedPage';
import { Life } from '../../src/life/Life';

let changes: HistoricChange[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'Date'] });
  changes = [
    { type: 'delete', key: 'a', revision: '9' },
    { type: 'upsert', key: 'a', revision: '8', committed_at: '2026-01-02T03:00:00Z', value: { spec: { n: 2 } } },
    { type: 'upsert', key: 'a', revision: '7', value: { spec: { n: 1 } } },
  ];
  vi.stubGlobal('fetch', (url: URL) => {
    const body = url.pathname.endsWith('/history')
      ? {
          instance: 'one',
          watch: 'notes',
          position: 'notes@e-9',
          revision: '9',
          complete_since: { revision: '6', time: '2026-01-02T02:00:00Z' },
          changes: url.searchParams.has('after') ? [] : changes,
          next: '',
        }
      : { instance: 'one', watches: [] };
    return Promise.resolve(new Response(JSON.stringify(body), { status: 200 }));
  });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const pass = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms));
const press = (name: string | RegExp) => fireEvent.click(screen.getByRole('button', { name }));
const then = () => screen.queryByTestId('then')?.textContent;

describe('the life of a resource', () => {
  const show = async () => {
    render(<Life watch="notes" resourceKey="a" encoding={undefined} revision="9" />);
    await pass();
  };
  it('has each version, how it differs from the one before, and since when nothing is missing', async () => {
    await show();
    const items = within(screen.getByRole('list', { name: /Versions/ })).getAllByRole('listitem');
    expect(items.filter((item) => item.textContent?.startsWith('●')).map((item) => item.textContent)).toEqual([
      expect.stringContaining('deleted'),
      expect.stringMatching(/revision 8.*spec\.n 1 →became 2/),
      expect.stringContaining('revision 7 created'),
    ]);
    expect(screen.getByTestId('since').textContent).toMatch(/Nothing is missing after revision 6 .*keeps none/);
  });
  it('steps back and forth', async () => {
    await show();
    expect(then()).toBeUndefined();
    press(/Older/);
    expect(then()).toContain('n: 2');
    press(/Older/);
    expect(then()).toContain('n: 1');
    press(/Newer/);
    expect(then()).toContain('n: 2');
    press('Newest');
    expect(then()).toBeUndefined();
  });
  it('plays from the oldest version, pauses, and ends at the newest', async () => {
    await show();
    press('Play');
    expect(then()).toContain('n: 1');
    press('Pause');
    await pass(5000);
    expect(then()).toContain('n: 1');
    press('Play');
    await pass(1000);
    expect(then()).toContain('n: 2');
    await pass(1000);
    expect(then()).toBeUndefined();
    expect(screen.getByRole('button', { name: 'Play' })).toBeTruthy();
  });
});

describe('the feed of a watch', () => {
  it('is filtered, and paused', async () => {
    render(<FeedPage watch="notes" />);
    await pass();
    expect(screen.getByText('3 changes')).toBeTruthy();
    fireEvent.change(screen.getByRole('searchbox'), { target: { value: 'delete' } });
    await pass();
    expect(screen.getByText('1 change')).toBeTruthy();
    press('Pause');
    expect(screen.getByRole('button', { name: 'Go on' })).toBeTruthy();
  });
});
