import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { RefusedError } from '@watchtide/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setOptions } from '../../src/app/route';
import { useReported } from '../../src/app/troubles';
import { ResourcesPage } from '../../src/resources/ResourcesPage';
import { Source } from './source';

let source: Source;
let followed = 0;
vi.mock('../../src/gateway/tide', async () => {
  const { useState } = await import('react');
  const follow = () => {
    followed++;
    return source.store;
  };
  return { useStore: () => useState(follow)[0], useWindow: () => undefined, useCounts: () => undefined, isFollowed: () => true };
});

let facts = {};
let reported = '';
let reportedSince = '';
function Reported() {
  reportedSince = useReported()
    .map(({ since }) => since)
    .join();
  reported = useReported()
    .map(({ what, state }) => `${what} ${state}`)
    .join(', ');
  return null;
}

/** Runs what is due: a frame, a timer of the filter, a response. */
const pass = (ms = 20) => act(() => vi.advanceTimersByTimeAsync(ms));

async function show(values?: Record<string, unknown>, options = '', writable = false) {
  location.hash = `#/watches/pods${options && `?${options}`}`;
  const watch = { name: 'pods', source: 'cluster', state: 'in_sync', writable };
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ watches: [{ ...watch, ...facts }] })));
  render(
    <>
      <ResourcesPage watch="pods" />
      <Reported />
    </>,
  );
  await pass();
  if (values) await act(() => source.snapshot(5, values));
  await pass();
}

async function change(revision: number, values: Record<string, unknown>) {
  act(() => source.change(revision, values));
  await pass();
}

const grid = () => screen.getByTestId('resources');
const rows = () =>
  within(grid())
    .queryAllByRole('row', { hidden: true })
    .filter((row) => row.dataset['key'] !== undefined);
const keys = () => rows().map((row) => row.dataset['key']);
const heads = () =>
  within(grid())
    .getAllByRole('columnheader')
    .map(({ textContent }) => textContent);
const cells = (key: string) => within(rows().find((row) => row.dataset['key'] === key)!).getAllByRole('gridcell');

beforeEach(() => {
  vi.useFakeTimers();
  source = new Source();
  facts = {};
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('the table of a watch', () => {
  it('shows the resources with the most informative fields', async () => {
    await show({ a: { name: 'x', spec: { size: 1 }, same: 0 }, b: { name: 'y', spec: { size: 2 }, same: 0 } });
    expect(heads()).toEqual(['key▲', 'name', 'spec.size', 'same']);
    expect(cells('b').map(({ textContent }) => textContent)).toEqual(['b', 'y', '2', '0']);
    expect({ ...grid().dataset }).toMatchObject({ state: 'in_sync', count: '2', revision: '5' });
    expect(grid().getAttribute('aria-rowcount')).toBe('3');
  });

  it('says since when with the time of the watch, and not that of its own connection', async () => {
    vi.setSystemTime('2026-01-02T05:00:00Z');
    facts = { since: '2026-01-02T03:00:00Z' };
    await show({ a: 1 });
    act(() => source.become('in_sync', { since: Date.parse('2026-01-02T04:59:57Z') }));
    await pass();
    expect(document.querySelector('.resource-summary')?.textContent).toContain('for 2 h');
    facts = { since: '2026-01-02T04:00:00Z', state: 'stale' };
    await pass(2000);
    act(() => source.become('stale', { since: Date.parse('2026-01-02T04:59:57Z') }));
    await pass(1000);
    expect(reportedSince).toBe(String(Date.parse('2026-01-02T04:00:00Z')));
  });

  it('says when what it shows was verified, once it was', async () => {
    await show({ a: 1 });
    const summary = document.querySelector('.resource-summary')!;
    expect(summary.textContent).not.toContain('verified');
    act(() => source.become('in_sync', { verifiedAt: new Date(2026, 0, 2, 12, 3, 4).getTime() }));
    await pass(1000);
    expect(summary.textContent).toMatch(/verified at .*12:03:04/);
  });

  it('adds columns for new fields, and keeps its columns otherwise', async () => {
    await show({ a: { n: 1 }, b: { n: 2 } });
    await change(6, { c: { n: 3 } });
    expect(heads()).toEqual(['key▲', 'n']);
    await change(7, { d: 'text' });
    expect(heads()).toEqual(['key▲', 'n', 'value']);
    await change(8, { c: undefined, d: undefined });
    expect(heads()).toEqual(['key▲', 'n', 'value']);
  });

  it('has only the rows near the screen in the document', async () => {
    await show(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${1e4 + i}`, { i }])));
    expect(rows().length).toBeLessThan(50);
    expect(grid().getAttribute('aria-rowcount')).toBe('5001');
    fireEvent.keyDown(grid(), { key: 'End' });
    fireEvent.scroll(grid());
    await pass();
    expect(keys().at(-1)).toBe('k14999');
    expect(rows().at(-1)!.getAttribute('aria-rowindex')).toBe('5001');
  });

  it('keeps the visible rows in place while others come above them', async () => {
    await show(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${1e4 + i}`, { i }])));
    grid().scrollTop = 3600;
    fireEvent.scroll(grid());
    await change(6, { a: { i: 0 }, b: { i: 0 }, k10001: undefined });
    expect(grid().scrollTop).toBe(3600 + 36);
    await change(7, { z: { i: 0 }, k10300: undefined });
    expect(grid().scrollTop).toBe(3600 + 36);
    fireEvent.click(within(grid()).getByRole('button', { name: 'key' }));
    await pass();
    expect(grid().scrollTop).toBe(0);
  });

  it('flashes a cell at each of its changes, and no other', async () => {
    await show({ a: { n: 1, m: 1 } });
    const flashes = () => cells('a').map((cell) => cell.dataset['flash']);
    expect(flashes()).toEqual([undefined, undefined, undefined]);
    await change(6, { a: { n: 2, m: 1 } });
    expect(flashes()).toEqual([undefined, 'odd', undefined]);
    await change(7, { a: { n: 3, m: 1 } });
    expect(flashes()).toEqual([undefined, 'even', undefined]);
  });

  it('marks a new row, and removes a deleted one after a moment', async () => {
    await show({ a: 1, c: 1 });
    await change(6, { b: 1, c: undefined });
    expect(rows().map((row) => `${row.dataset['key']} ${row.dataset['phase']}`)).toEqual(['a undefined', 'b new', 'c gone']);
    expect(grid().dataset['count']).toBe('2');
    await pass(1000);
    expect(keys()).toEqual(['a', 'b']);
  });

  it('is sorted by a click on a header, and the URL keeps the order', async () => {
    await show({ a: { n: 2 }, b: { n: 10 } });
    const button = within(grid()).getByRole('button', { name: 'n' });
    fireEvent.click(button);
    await pass();
    fireEvent.click(button);
    await pass();
    expect(keys()).toEqual(['b', 'a']);
    expect(location.hash).toBe('#/watches/pods?sort=-n');
    expect(within(grid()).getByRole('columnheader', { name: /^n/ }).getAttribute('aria-sort')).toBe('descending');
  });

  it('takes columns, order and filter from the URL', async () => {
    await show({ a: { n: 1, t: 'yes' }, b: { n: 2, t: 'yes' }, c: { n: 3, t: 'no' } }, 'columns=t,revision&sort=-n&filter=YES');
    expect(heads()).toEqual(['t', 'revision']);
    expect(keys()).toEqual(['b', 'a']);
    expect(screen.getByText('2 of 3')).toBeTruthy();
  });

  it('is filtered as the user types, and the URL keeps the filter', async () => {
    await show({ a: { t: 'yes' }, b: { t: 'no' } });
    fireEvent.change(screen.getByRole('combobox', { name: 'Filter' }), { target: { value: 'no' } });
    await pass(300);
    expect(keys()).toEqual(['b']);
    expect(location.hash).toBe('#/watches/pods?filter=no');
  });

  it('has the columns that the user chooses', async () => {
    await show({ a: { n: 1, t: 'x' } });
    fireEvent.click(screen.getByRole('button', { name: 'Columns' }));
    fireEvent.click(screen.getByRole('checkbox', { name: 'n' }));
    fireEvent.click(screen.getByRole('checkbox', { name: 'revision' }));
    await pass();
    expect(heads()).toEqual(['key▲', 't', 'revision']);
    expect(location.hash).toBe('#/watches/pods?columns=key%2Ct%2Crevision');
    fireEvent.click(screen.getByRole('button', { name: 'Choose automatically' }));
    await pass();
    expect(heads()).toEqual(['key▲', 'n', 't']);
  });

  it('can be paused, which the page shows, and continues in steps', async () => {
    await show({ a: 1 });
    fireEvent.click(screen.getByRole('button', { name: 'Pause' }));
    await change(6, { a: 2 });
    await change(7, { a: 3 });
    expect(cells('a')[1]!.textContent).toBe('1');
    expect(reported).toBe('pods paused');
    await pass(250);
    expect(screen.getByText('2 changes waiting')).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Step' }));
    await pass();
    expect([cells('a')[1]!.textContent, grid().dataset['revision']]).toEqual(['2', '6']);
    fireEvent.click(screen.getByRole('button', { name: 'Pause' }));
    await pass();
    expect([cells('a')[1]!.textContent, grid().dataset['revision'], reported]).toEqual(['3', '7', '']);
  });

  it('shows the newest revision, and a summary of it four times a second', async () => {
    const summary = () => document.querySelector('.resource-summary dl')!.textContent!;
    await show({ a: 1 });
    await pass(250);
    const seen = new Set<string>();
    for (let revision = 6; revision < 56; revision++) {
      await change(revision, { a: revision });
      expect([cells('a')[1]!.textContent, grid().dataset['revision']]).toEqual([String(revision), String(revision)]);
      seen.add(summary());
    }
    expect(seen.size).toBeLessThanOrEqual(6); // in one second
    await pass(250);
    expect(summary()).toContain('revision 55');
  });

  it('reports that its data may be stale', async () => {
    await show();
    expect(reported).toBe('pods connecting');
    act(() => source.snapshot(1, { a: 1 }));
    await pass();
    expect(reported).toBe('');
    act(() => source.become('offline'));
    await pass();
    expect([reported, grid().dataset['state'], keys()]).toEqual(['pods offline', 'offline', ['a']]);
  });

  it('is being loaded, and not stale, while it shows nothing', async () => {
    await show();
    act(() => source.become('stale'));
    await pass();
    expect(reported).toBe('pods priming');
    act(() => source.snapshot(1, { a: 1 }));
    act(() => source.become('stale'));
    await pass();
    expect(reported).toBe('pods stale');
  });

  it('shows the reason why it is empty', async () => {
    await show();
    expect(grid().textContent).toContain('Not loaded yet.');
    act(() => source.become('closed', { error: new Error('no room') }));
    await pass();
    expect([reported, grid().textContent]).toEqual(['pods closed', expect.stringContaining('Nothing was loaded.')]);
    cleanup();
    source = new Source();
    await show({});
    expect(grid().textContent).toContain('This watch has no resources.');
    await change(6, { a: 1 });
    fireEvent.change(screen.getByRole('combobox', { name: 'Filter' }), { target: { value: 'zzz' } });
    await pass(300);
    expect(grid().textContent).toContain('None of 1 resources matches.');
    expect(screen.getAllByText('0 of 1')).toHaveLength(1);
    await pass(500);
    expect(within(screen.getByRole('combobox').closest<HTMLElement>('.row-filter')!).getByRole('status').textContent).toBe('0 of 1');
  });

  it('links to the list of watches if there is no watch of this name', async () => {
    await show();
    act(() => source.become('closed', { error: new RefusedError(404, undefined, undefined) }));
    await pass();
    expect(screen.getByRole('heading', { name: 'There is no watch “pods”' })).toBeTruthy();
    expect(screen.getByRole('link', { name: 'The list of watches' }).getAttribute('href')).toBe('#/watches');
  });

  it.each([
    [401, 'You must sign in to see “pods”'],
    [403, 'You may not see “pods”'],
  ])('shows nothing any more after a refusal with %i', async (status, heading) => {
    await show({ a: 1 });
    const problem = { type: 'about:blank', title: 'Refused', status, detail: 'it is not for you' };
    act(() => source.become('closed', { error: new RefusedError(status, problem, undefined) }));
    await pass();
    screen.getByRole('heading', { name: heading });
    expect(screen.queryByTestId('resources')).toBeNull();
    expect(reported).toBe('');
    if (status === 403) screen.getByText('The gateway says: it is not for you.');
    else screen.getByRole('button', { name: 'Sign in' });
  });

  it('says why nothing can be shown, and keeps what was loaded before if it is not forbidden', async () => {
    const refused = () =>
      new RefusedError(400, { type: 'about:blank', title: 'Refused', status: 400, detail: 'the name is too long' }, undefined);
    await show();
    act(() => source.become('closed', { error: refused() }));
    await pass();
    screen.getByRole('heading', { name: '“pods” cannot be shown' });
    screen.getByText('The gateway says: the name is too long.');
    cleanup();
    source = new Source();
    await show({ a: 1 });
    act(() => source.become('closed', { error: refused() }));
    await pass();
    expect(keys()).toEqual(['a']);
  });

  it('follows a watch that appears later', async () => {
    await show();
    const serve = (...names: string[]) =>
      vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ watches: names.map((name) => ({ name })) })));
    serve('others');
    act(() => source.become('closed', { error: new RefusedError(404, undefined, undefined) }));
    await pass(1000);
    source = new Source();
    serve('others', 'pods');
    await pass(1500);
    await act(() => source.snapshot(5, { a: 1 }));
    await pass(); // the table appears
    await pass(); // with its rows
    expect(keys()).toEqual(['a']);
  });

  it('follows a watch that was refused for less time than the list takes to show it', async () => {
    await show({ a: 1 });
    act(() => source.become('closed', { error: new RefusedError(403, undefined, undefined) }));
    source = new Source();
    await pass(1500);
    await act(() => source.snapshot(5, { a: 1 }));
    await pass();
    expect(keys()).toEqual(['a']);
  });

  it('retries a watch that is refused although it is listed less and less often', async () => {
    source.become('closed', { error: new RefusedError(404, undefined, undefined) });
    followed = 0;
    await show();
    await pass(60_000);
    screen.getByRole('heading', { name: 'There is no watch “pods”' });
    expect(followed).toBe(2 * 6); // at once, and after 1, 2, 4, 8 and 16 s; the table has two uses
  });
});

describe('the selection', () => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${1e4 + i}`, { i }]));
  const selected = () => rows().filter((row) => row.getAttribute('aria-selected') === 'true');

  it('is the row of a link, which comes into view', async () => {
    await show(many, 'key=k10300');
    fireEvent.scroll(grid());
    await pass();
    expect(selected().map((row) => [row.dataset['key'], row.dataset['active']])).toEqual([['k10300', 'true']]);
    expect(grid().scrollTop).toBeGreaterThan(0);
    act(() => setOptions({ key: 'k10020' }));
    await pass();
    fireEvent.scroll(grid());
    await pass();
    expect(selected().map((row) => row.dataset['key'])).toEqual(['k10020']);
    grid().scrollTop = 0;
    fireEvent.scroll(grid());
    await change(6, { k10020: { i: 0 } });
    expect(grid().scrollTop).toBe(0);
  });

  it('waits for a row that is not there yet', async () => {
    await show({ a: 1 }, 'key=b');
    await change(6, { b: 2 });
    expect(selected().map((row) => [row.dataset['key'], row.dataset['active']])).toEqual([['b', 'true']]);
  });

  it('moves with the arrow keys, in the table and on the detail', async () => {
    await show({ a: 1, b: 2, c: 3, d: 4 }, 'key=a');
    const at = () => [
      new URLSearchParams(location.hash.split('?')[1]).get('key'),
      selected()
        .map((row) => row.dataset['key'])
        .join(),
    ];
    const before = history.length;
    grid().focus();
    fireEvent.keyDown(grid(), { key: 'ArrowDown' });
    await pass();
    expect(at()).toEqual(['b', 'b']);
    expect(document.activeElement).toBe(grid());
    expect(screen.queryByTestId('life')).toBeNull();
    await pass(200);
    expect(screen.getByTestId('life')).toBeTruthy();
    fireEvent.keyDown(grid(), { key: 'End' });
    await pass();
    expect(at()).toEqual(['d', 'd']);
    act(() => screen.getByTestId('resource-detail').focus());
    fireEvent.keyDown(screen.getByTestId('resource-detail'), { key: 'ArrowUp' });
    await pass();
    expect(at()).toEqual(['c', 'c']);
    expect(document.activeElement).toBe(screen.getByTestId('resource-detail'));
    expect(history.length).toBe(before);
  });
});

describe('the detail of a resource', () => {
  it('opens with Enter, closes with Escape, and is in the URL', async () => {
    await show({ a: { n: 1 }, b: { n: 2 } });
    fireEvent.keyDown(grid(), { key: 'ArrowDown' });
    fireEvent.keyDown(grid(), { key: 'ArrowDown' });
    expect(document.getElementById(grid().getAttribute('aria-activedescendant')!)?.dataset['key']).toBe('b');
    fireEvent.keyDown(grid(), { key: 'Enter' });
    await pass();
    const detail = screen.getByTestId('resource-detail');
    expect([detail.dataset['key'], location.hash]).toEqual(['b', '#/watches/pods?key=b']);
    expect(document.activeElement).toBe(detail);
    fireEvent.keyDown(detail, { key: 'Escape' });
    await pass();
    expect(screen.queryByTestId('resource-detail')).toBeNull();
    expect([location.hash, document.activeElement]).toEqual(['#/watches/pods', grid()]);
  });

  it('shows the value as a tree that folds, and the last one of a deleted resource', async () => {
    await show({ a: { spec: { n: 1 }, t: 'x' } }, 'key=a');
    const tree = () =>
      within(screen.getByRole('tree'))
        .getAllByRole('treeitem')
        .map(({ textContent }) => textContent);
    expect(tree()).toEqual(['▾spec: {1}', 'n: 1', 't: "x"']);
    fireEvent.keyDown(screen.getByRole('tree'), { key: 'ArrowLeft' });
    expect(tree()).toEqual(['▸spec: {1}', 't: "x"']);
    await change(6, { a: { spec: { n: 2 }, t: 'x' } });
    await change(7, { a: undefined });
    expect(screen.getByText(/It was deleted/)).toBeTruthy();
  });

  it('offers editing only for writable watches', async () => {
    await show({ a: 0 }, 'key=a');
    expect(screen.queryByRole('button', { name: 'New resource' })).toBeNull();
    expect(screen.queryByRole('button', { name: 'Edit' })).toBeNull();
    cleanup();
    await show({ a: 0 }, 'key=a', true);
    expect(screen.getByRole('button', { name: 'New resource' })).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Edit' })).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Delete' })).toBeTruthy();
  });

  it('supports a key that is not text', async () => {
    const key = '\udfff/w==';
    await show();
    source.resources = new Map([[key, { key: '/w==', key_encoding: 'base64', revision: '1', value: 'x' }]]);
    await act(() => source.become('in_sync', { resources: source.resources, revision: '1' }));
    await act(() => source.change(2, { other: 1 }));
    await pass();
    cleanup();
    location.hash = '#/watches/pods';
    render(<ResourcesPage watch="pods" />);
    await pass();
    fireEvent.click(rows().find((row) => row.dataset['key'] === '/w==')!);
    await pass();
    expect(location.hash).toBe('#/watches/pods?key=%2Fw%3D%3D&key_encoding=base64');
    expect(screen.getByTestId('resource-detail').textContent).toContain('key in base64');
  });
});
