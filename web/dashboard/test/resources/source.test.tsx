import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import type { CountsView } from '@watchtide/client/counts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ResourcesPage } from '../../src/resources/ResourcesPage';
import { largeCount, mostCount } from '../../src/resources/useSource';
import { Source } from './source';
import { resources, WindowSource } from './windowSource';

// What the page follows, by its filter; empty for the whole watch.
let followed: Map<string, Source>;
let windows: WindowSource[];
let counts: CountsView | undefined;
let counted: object | undefined;
let asked: string[];
let answer: (filter: string) => Response;
let visible: (count: number) => Response; // how many resources the user sees

vi.mock('../../src/gateway/tide', async () => {
  const { useEffect, useState } = await import('react');
  const useStore = (name: string | undefined, filter = '') => {
    const [store, setStore] = useState<unknown>();
    useEffect(() => {
      if (name === undefined) return;
      const source = followed.get(filter) ?? new Source();
      followed.set(filter, source);
      setStore(source.store);
      return () => setStore(undefined);
    }, [name, filter]);
    return store;
  };
  const useWindow = (name: string | undefined, beginning: ConstructorParameters<typeof WindowSource>[0]) => {
    const [window, setWindow] = useState<unknown>();
    useEffect(() => {
      if (name === undefined) return;
      const window = new WindowSource(beginning);
      windows.push(window);
      setWindow(window);
      return () => {
        setWindow(undefined);
        window.close();
      };
    }, [name]);
    return window;
  };
  const useCounts = (name: string | undefined, options: object) => {
    counted = name === undefined ? undefined : { name, ...options };
    return name === undefined ? undefined : counts;
  };
  return { useStore, useWindow, useCounts, isFollowed: () => true };
});

const pass = (ms = 50) => act(() => vi.advanceTimersByTimeAsync(ms));
const keys = () =>
  within(screen.getByTestId('resources'))
    .queryAllByRole('row')
    .map((row) => row.dataset['key'])
    .filter((key) => key !== undefined);
const note = () => document.querySelector('.found')!.textContent;

async function show(count: number, filter = '', sort = '', facts: object = { count, bytes: 1 }) {
  location.hash = `#/watches/pods?${new URLSearchParams({ ...(filter && { filter }), ...(sort && { sort }) })}`;
  vi.stubGlobal('fetch', async (input: URL | string) => {
    const url = new URL(input);
    if (!url.pathname.endsWith('/resources'))
      return Response.json({ watches: [{ name: 'pods', source: 's', state: 'in_sync', ...facts }] });
    const filter = url.searchParams.get('filter');
    if (filter === null) return visible(count);
    asked.push(filter);
    return answer(filter);
  });
  render(<ResourcesPage watch="pods" />);
  await pass();
  for (let i = 0; i < 20 && followed.size + windows.length === 0; i++) await pass(); // on a busy machine, answers take longer
  await pass();
}

async function load(filter: string, values: Record<string, unknown>) {
  await act(() => followed.get(filter)!.snapshot(5, values));
  await pass();
}

async function type(filter: string) {
  fireEvent.change(screen.getByRole('combobox', { name: 'Filter' }), { target: { value: filter } });
  await pass(400);
}

const some = { a: { state: 'bad', n: 1 }, b: { state: 'bad', n: 2 }, c: { state: 'good', n: 3 } };
const bad = 'value.state == "bad"';

const refuse = () => {
  answer = () => Response.json({ detail: 'the filter could cost too much' }, { status: 400 });
};
const takes = (count: number) => {
  answer = () => Response.json({ count, resources: [] });
};

beforeEach(() => {
  vi.useFakeTimers();
  followed = new Map();
  windows = [];
  counts = undefined;
  asked = [];
  answer = () => Response.json({ resources: [] });
  visible = (count) => Response.json({ count, resources: [] });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('a filter', () => {
  it('is evaluated by the page while the watch is small', async () => {
    await show(3);
    await load('', some);
    await type('state:bad');
    expect([keys(), note(), asked]).toEqual([['a', 'b'], '2 of 3', []]);
  });

  it('is evaluated by the gateway once the watch is large, and by the page until its rows are there', async () => {
    await show(largeCount + 1, '', 'revision');
    await load('', some);
    await type('state:bad n>1');
    expect(asked).toEqual([`${bad} && value.n > 1`]);
    expect([keys(), note()]).toEqual([['b'], '1 of 3']);
    await load(`${bad} && value.n > 1`, { b: some.b, d: { state: 'bad', n: 7 } });
    expect([keys(), note()]).toEqual([['b', 'd'], '2 of 20,001 · by the gateway']);
    await type('');
    expect(keys()).toEqual(['a', 'b', 'c']);
  });

  it('is evaluated by the page if the gateway refuses it, which says why', async () => {
    refuse();
    await show(largeCount + 1, '', 'revision');
    await load('', some);
    await type('state:bad');
    expect([keys(), [...followed.keys()]]).toEqual([['a', 'b'], ['']]);
    screen.getByText('Filtered in this page: the filter could cost too much');
    await pass(60_000);
    expect(asked).toHaveLength(1); // it would be refused again
  });

  it.each([
    ['did not answer', () => Promise.reject(new TypeError('Failed to fetch'))],
    ['had too much to do', () => Response.json({ detail: 'too many views' }, { status: 429 })],
    ['was not ready', () => Response.json({ detail: 'starting' }, { status: 503 })],
  ])('is evaluated by the gateway as soon as it can if it %s', async (_, failure) => {
    answer = failure as typeof answer;
    await show(largeCount + 1, '', 'revision');
    await load('', some);
    await type('state:bad');
    await pass(5_000);
    expect([keys(), [...followed.keys()], asked.length]).toEqual([['a', 'b'], [''], 2]);
    answer = () => Response.json({ resources: [] });
    await pass(5_000);
    await load(bad, { d: { state: 'bad' } });
    expect([keys(), note()]).toEqual([['d'], '1 of 20,001 · by the gateway']);
    await pass(60_000);
    expect(asked).toHaveLength(3);
  });

  it('with a mistake says where, and changes nothing', async () => {
    await show(3);
    await load('', some);
    await type('state:bad');
    await type('state:bad "x');
    expect(keys()).toEqual(['a', 'b']);
    screen.getByText(/^Character 11: the quote is not closed/);
    await type('stat:bad');
    screen.getByText(/No resource here has a field “stat”: did you mean “state”\?/);
  });
});

describe('the tiles of a watch that is loaded', () => {
  const tiles = () => screen.queryByRole('group', { name: 'Resources by state' })?.textContent;

  it('are counted by the page, among what the rest of the filter selects, and follow changes', async () => {
    const values = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`k${i}`, { state: ['bad', 'ok'][i % 2], n: i }]));
    await show(9);
    await load('', values);
    expect([tiles(), counted]).toEqual(['bad 5ok 4', undefined]);
    await type('state:ok n>2');
    expect([tiles(), keys()]).toEqual(['bad 3ok 3', ['k3', 'k5', 'k7']]);
    await act(() => followed.get('')!.change(6, { k4: { state: 'ok', n: 4 } }));
    await pass(1_100);
    expect(tiles()).toBe('ok 4bad 2');
    fireEvent.click(within(screen.getByRole('group', { name: 'Resources by state' })).getByRole('button', { name: /bad/ }));
    await pass(400);
    expect(keys()).toEqual(['k6', 'k8']);
  });
});

describe('a large watch', () => {
  const large = resources(largeCount + 1);
  const change = (hash: string) =>
    act(() => {
      location.hash = `#/watches/pods?${hash}`;
      dispatchEvent(new HashChangeEvent('hashchange'));
    });
  const answer = async (all = large) => {
    await act(() => windows.at(-1)!.answer(all));
    await pass();
  };

  it('is a window, and nothing else of it is loaded', async () => {
    await show(large.length);
    expect([windows.length, followed.size]).toEqual([1, 0]);
    expect(windows[0]!.options).toMatchObject({ order: '"\\u0000"', offset: 0, filter: '', prefix: '' });
    await answer();
    expect(keys()[0]).toBe('k000000');
    expect(screen.getByTestId('resources').dataset).toMatchObject({ count: '20001', state: 'in_sync' });
    fireEvent.click(screen.getByTitle('Sort by n'));
    await pass();
    expect(windows[0]!.options.order).toBe('"n"');
    await change('prefix=k00&sort=-n');
    await pass();
    expect(windows[0]!.options).toMatchObject({ order: '-"n"', prefix: 'k00' });
    expect(windows).toHaveLength(1);
  });

  it('is filtered by the gateway, and the rows stay until those of the filter are there', async () => {
    await show(large.length);
    await answer();
    await type('state:bad');
    expect([windows.length, windows[0]!.options.filter, keys()[0]]).toEqual([1, bad, 'k000000']);
    await answer(resources(2, 'x'));
    expect([keys(), note()]).toEqual([['x000000', 'x000001'], '2 of 20,001 · by the gateway']);
  });

  it('is loaded where its keys are needed, and meanwhile the window is shown', async () => {
    await show(large.length);
    await answer();
    await change('keys=');
    await pass();
    expect([[...followed.keys()], keys()[0]]).toEqual([[''], 'k000000']);
    await load('', { a: 'needle', b: 'hay' });
    expect(keys()).toEqual(['a', 'b']);
    await change('');
    await pass();
    expect([windows.length, keys()]).toEqual([2, ['a', 'b']]);
    await answer();
    expect(keys()[0]).toBe('k000000');
    await change('keys=');
    await pass();
    expect(keys()[0]).toBe('a'); // it was still loaded
    screen.getByRole('button', { name: 'Keys', pressed: true });
  });

  const states = ['ok', 'bad', 'ok', 'slow'];
  const named = large.map((resource, i) => ({ ...resource, value: { state: states[i % 4], n: i } }));
  const needle = '(key.matches("(?i)needle") || value.state.matches("(?i)needle"))';

  it('is searched for texts by the gateway, in the key and in the columns of texts', async () => {
    await show(large.length);
    await answer(named);
    await type('needle');
    expect([windows[0]!.options.filter, asked.at(-1), followed.size]).toEqual([needle, needle, 0]);
    await answer(resources(2, 'needle'));
    expect([keys(), note()]).toEqual([['needle000000', 'needle000001'], '2 of 20,001 · by the gateway']);
    await change('filter=needle&columns=key,n');
    await pass(400);
    expect(windows[0]!.options.filter).toBe('key.matches("(?i)needle")');
  });

  it('is searched for the text that it is opened with, once its first rows show its columns', async () => {
    await show(large.length, 'n>1 needle');
    expect([windows.map(({ options }) => options.filter), note()]).toEqual([['value.n > 1'], 'Searching…']);
    await answer(named);
    await pass(400);
    expect([windows[0]!.options.filter, followed.size]).toEqual([`value.n > 1 && ${needle}`, 0]);
    await answer(resources(2, 'needle'));
    expect(note()).toBe('2 of 20,001 · by the gateway');
  });

  it('is not loaded for an order or a tree of keys if it is too large, unless a filter leaves less', async () => {
    await show(mostCount + 1, '', 'revision');
    await answer(named);
    expect([windows.length, followed.size, windows[0]!.options.order]).toEqual([1, 0, '"\\u0000"']);
    screen.getByText('Sorted by key: 200,001 resources are too many to be sorted by revision in this page.');
    await change('keys=');
    await pass();
    within(screen.getByRole('region', { name: 'Keys by prefix' })).getByText(/^200,001 resources are too many for a tree/);
    expect(followed.size).toBe(0);
    await change('sort=revision&filter=state:bad');
    await pass(400);
    expect([...followed.keys()]).toEqual([bad]);
    await load(bad, { a: some.a });
    expect(keys()).toEqual(['a']);
    expect(screen.queryByText(/too many/)).toBeNull();
  });

  it('is not loaded for a filter that the gateway refuses if it is too large', async () => {
    refuse();
    await show(mostCount + 1, 'state:bad');
    await answer(named);
    expect([windows[0]!.options.filter, followed.size]).toEqual(['', 0]);
    screen.getByText(/^Not filtered: 200,001 resources are too many .* By the gateway: the filter could cost too much$/);
  });

  it('is not loaded if what a filter leaves is too large', async () => {
    takes(mostCount + 1);
    await show(mostCount + 2, 'state:bad', 'revision');
    await answer(named);
    expect([windows[0]!.options.filter, followed.size]).toEqual([bad, 0]);
    screen.getByText(/^Sorted by key: 200,001 resources/);
  });

  it('has tiles that the gateway counts, which filter by a click', async () => {
    const groups = [
      { key: 'null', values: [null], count: 3 },
      ...Object.entries({ bad: 5_000, ok: 10_001, slow: 5_000 }).map(([key, count]) => ({ key, values: [key], count })),
    ];
    counts = {
      ...{ state: 'in_sync', since: 0, reason: '', revision: '5', total: 20_004 },
      groups: new Map(groups.map((group) => [group.key, group])),
    };
    await show(large.length, 'n>1');
    await answer(named);
    expect(counted).toEqual({ name: 'pods', by: '"state"', filter: 'value.n > 1', prefix: '' });
    const tiles = () => within(screen.getByRole('group', { name: 'Resources by state' })).getAllByRole('button');
    expect(tiles().map(({ textContent }) => textContent)).toEqual(['ok 10,001', 'bad 5,000', 'slow 5,000']);
    fireEvent.click(tiles()[1]!);
    await pass(400);
    expect(new URLSearchParams(location.hash.split('?')[1]).get('filter')).toBe('n>1 state:bad');
    expect(tiles()[1]!.ariaPressed ?? tiles()[1]!.getAttribute('aria-pressed')).toBe('true');
    expect(counted).toMatchObject({ filter: 'value.n > 1' }); // the others can still be chosen
    expect(windows[0]!.options.filter).toContain('value.state == "bad"');
    fireEvent.click(tiles()[1]!);
    await pass(400);
    expect(new URLSearchParams(location.hash.split('?')[1]).get('filter')).toBe('n>1');
  });

  it('has no tiles while a filter has a mistake', async () => {
    await show(large.length, 'state:bad');
    await answer(named);
    await change('filter=state:bad+"x');
    await pass();
    expect(counted).toBeUndefined();
  });

  it('shows a refusal', async () => {
    await show(large.length);
    await act(() => windows[0]!.refuse(403));
    await pass();
    screen.getByText('You may not see “pods”');
  });

  it('has the detail of a resource that is not in the window', async () => {
    await show(large.length);
    await answer();
    await change('key=k019999');
    await pass();
    expect(followed.size).toBe(1);
    await load('', { k019999: { n: 'found' } });
    within(screen.getByTestId('resource-detail')).getByText(/found/);
    expect(screen.queryByText('There is no resource with this key.')).toBeNull();
    await load('', {});
    screen.getByText('It was deleted. This is its last value.');
  });
});

describe('a watch of which the user sees only a part', () => {
  const partial = { count: 0, bytes: 0, partial: true };

  it('is a window if what the user sees is large', async () => {
    await show(largeCount + 1, '', '', partial);
    expect([windows.length, followed.size]).toEqual([1, 0]);
    await act(() => windows[0]!.answer(resources(largeCount + 1)));
    await type('state:bad');
    await act(() => windows[0]!.answer(resources(2, 'x')));
    await pass();
    expect(note()).toBe('2 · by the gateway'); // not of how many
  });

  it('is loaded if that is small', async () => {
    await show(3, '', '', partial);
    expect([windows.length, [...followed.keys()]]).toEqual([0, ['']]);
    await load('', some);
    await type('state:bad');
    expect(note()).toBe('2 of 3');
  });

  it('is a window if the gateway does not say how large it is', async () => {
    visible = () => Response.json({ detail: 'too much to do' }, { status: 503 });
    await show(3, '', '', partial);
    expect([windows.length, followed.size]).toEqual([1, 0]);
  });
});

describe('a prefix', () => {
  it('of the tree narrows the table', async () => {
    await show(3);
    await load('', { 'a/1': 1, 'a/2': 1, 'b/1': 1 });
    act(() => {
      location.hash = '#/watches/pods?prefix=a/';
      dispatchEvent(new HashChangeEvent('hashchange'));
    });
    await pass();
    expect(keys()).toEqual(['a/1', 'a/2']);
    fireEvent.click(screen.getByTitle('Show all keys'));
    await pass();
    expect(keys()).toEqual(['a/1', 'a/2', 'b/1']);
  });
});

describe('the detail', () => {
  it('can be made wider with the keyboard, which is remembered', async () => {
    await show(3);
    await load('', some);
    fireEvent.click(within(screen.getByTestId('resources')).getAllByRole('gridcell')[0]!);
    await pass();
    const splitter = screen.getByRole('separator', { name: 'Width of the detail' });
    const before = Number(splitter.getAttribute('aria-valuenow'));
    fireEvent.keyDown(splitter, { key: 'ArrowLeft' });
    expect(splitter.getAttribute('aria-valuenow')).toBe(String(before + 2));
    expect(localStorage.getItem('watchtide detail')).toBe(String(before + 2));
    fireEvent.keyDown(splitter, { key: 'End' });
    expect(splitter.getAttribute('aria-valuenow')).toBe(splitter.getAttribute('aria-valuemin'));
    localStorage.clear();
  });
});
