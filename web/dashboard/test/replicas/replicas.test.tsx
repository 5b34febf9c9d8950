import { act, cleanup, render, screen, within } from '@testing-library/react';
import type { ReplicaFacts, Replicas } from '@watchtide/protocol';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { compared, namesOf } from '../../src/replicas/compare';
import { ReplicasPage } from '../../src/replicas/ReplicasPage';

const facts = (instance: string, revision: string, more: Partial<ReplicaFacts> = {}): ReplicaFacts => ({
  instance,
  version: '1.2.3',
  started: '2026-01-02T03:00:00Z',
  uptime_seconds: 60,
  ready: true,
  reasons: [],
  limits: [
    { name: 'streams', used: 90, most: 100, unit: '' },
    { name: 'snapshots', used: 2048, most: 4096, unit: 'bytes', waiting: 3 },
    { name: 'watches', used: 1024, unit: 'bytes' },
  ],
  watches: [
    {
      name: 'notes',
      epoch: 'e',
      revision,
      state: 'in_sync',
      since: '2026-01-02T03:00:00Z',
      memory: { used: 3072, most: 10240, served: 2048, most_served: 4096 },
    },
  ],
  ...more,
});

describe('replicas side by side', () => {
  it('shows which is behind, with all digits', () => {
    const [row] = compared([facts('a', '18446744073709551615'), facts('b', '18446744073709551613'), facts('c', '0', { watches: [] })]);
    expect(row!.of.map((watch) => watch?.behind)).toEqual([0n, 2n, undefined]);
    expect(row!.split).toBe(false);
  });
  it('compares no revisions of different epochs', () => {
    const other = facts('b', '7', { watches: [{ name: 'notes', epoch: 'f', revision: '7', state: 'in_sync', since: '' }] });
    const [row] = compared([facts('a', '9'), other]);
    expect([row!.split, row!.of[1]!.behind]).toEqual([true, undefined]);
  });
  it('says nothing of how far a replica is behind that is not primed yet', () => {
    const priming = facts('b', '0', { watches: [{ name: 'notes', epoch: '', revision: '0', state: 'priming', since: '' }] });
    const [row] = compared([facts('a', '9'), priming]);
    expect([row!.split, row!.of[1]!.behind]).toEqual([false, undefined]);
  });
});

describe('the names of replicas', () => {
  it('are those of their hosts, if these tell them apart', () => {
    expect(namesOf([{ host: 'web-1', instance: 'a' }, { host: 'web-2', instance: 'b' }, { instance: 'c' }])).toEqual([
      'web-1',
      'web-2',
      'c',
    ]);
    expect(
      namesOf([
        { host: 'pc', instance: 'a' },
        { host: 'pc', instance: 'b' },
      ]),
    ).toEqual(['pc (a)', 'pc (b)']);
  });
});

describe('the page of replicas', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => {
    cleanup();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
  it('shows each replica, what is in use, and who does not answer', async () => {
    const replicas: Replicas = {
      instance: 'a',
      configured: true,
      self: facts('a', '9'),
      siblings: [
        {
          address: 'http://10.0.0.7:8081',
          took_seconds: 0.1,
          answer: facts('b', '7', { ready: false, reasons: ['watch "notes" is stale'] }),
        },
        { address: 'http://10.0.0.8:8081', took_seconds: 2, error: 'there was no answer within 2s' },
      ],
    };
    vi.stubGlobal('fetch', (url: URL) =>
      Promise.resolve(
        new Response(JSON.stringify(url.pathname.endsWith('/v1/client') ? { instance: 'a', operator: true } : replicas), { status: 200 }),
      ),
    );
    render(<ReplicasPage />);
    await act(() => vi.advanceTimersByTimeAsync(100));
    await act(() => vi.advanceTimersByTimeAsync(100));
    const page = screen.getByTestId('replicas');
    expect(within(page).getByText('answers this page')).toBeTruthy();
    expect(page.textContent).toContain('watch "notes" is stale');
    expect(page.textContent).toContain('there was no answer within 2s');
    expect(page.textContent).toContain('2 behind');
    expect(page.textContent).toContain('2.0 KiB of 4.0 KiB, 3 waiting');
    expect(page.textContent).toContain('memory 3.0 KiB of 10.0 KiB, served 2.0 KiB of 4.0 KiB');
    expect(screen.getAllByLabelText<HTMLMeterElement>('memory of notes in use').map(({ value }) => value)).toEqual([0.5, 0.5]);
  });
});
