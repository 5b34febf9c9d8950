import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PlacesBar } from '../../src/resources/PlacesBar';
import { mostPlaces, offsetsOf, type Place } from '../../src/resources/places';
import type { TableModel, TableStatus } from '../../src/resources/table';
import { usePlaces } from '../../src/resources/usePlaces';
import { WindowModel } from '../../src/resources/windowModel';
import { resources, WindowSource } from './windowSource';

let cramped = false;
vi.mock('../../src/app/narrow', () => ({ useCramped: () => cramped }));

afterEach(cleanup);

describe('places', () => {
  it('are at a distance that is a power of two, from the first row to about the last', () => {
    const places = offsetsOf(1_000_000);
    expect([places.length, places[0], places[1], places.at(-2), places.at(-1)]).toEqual([17, 0, 65_536, 983_040, 999_424]);
    for (const total of [1, 2, 16, 17, 257, 1024, 5_000, 1_048_577]) {
      const some = offsetsOf(total);
      expect(some.length).toBeLessThanOrEqual(mostPlaces + 1);
      expect([some[0], new Set(some).size, some.every((offset) => offset < total)]).toEqual([0, some.length, true]);
    }
  });

  it('are the same while the number of rows changes a little', () => {
    expect(offsetsOf(1_000_700)).toEqual(offsetsOf(1_000_000));
  });
});

describe('the values at places', () => {
  const all = resources(5_000);
  let asked: URL[];
  let status: number;
  let served: typeof all;
  let model: TableModel;
  let places: readonly Place[] | undefined;

  beforeEach(() => {
    vi.useFakeTimers();
    asked = [];
    status = 200;
    vi.stubGlobal('fetch', (url: URL) => {
      asked.push(new URL(url));
      const offset = Number(new URL(url).searchParams.get('offset'));
      return Promise.resolve(Response.json({ resources: served.slice(offset, offset + 1) }, { status }));
    });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  function Shown({ status }: { status: TableStatus }) {
    places = usePlaces('services', model, status);
    return null;
  }

  async function show(column: string, descending = false, rows = all) {
    const live = new WindowSource({});
    const window = new WindowModel(live, { sort: { column, descending }, filter: 'value.n >= 0', prefix: 'k' });
    model = window;
    const end = window.follow();
    served = rows;
    live.answer(rows);
    await act(() => vi.advanceTimersByTimeAsync(20));
    render(<Shown status={window.status} />);
    await act(() => vi.advanceTimersByTimeAsync(100));
    return { window, live, end };
  }

  it('are those of the rows, in the order of the table', async () => {
    const { end } = await show('n');
    expect(places?.map(({ index, value }) => [index, value])).toEqual(offsetsOf(5_000).map((n) => [n, n]));
    expect(Object.fromEntries(asked[1]!.searchParams)).toEqual({
      order: '"n"',
      limit: '1',
      offset: '512',
      filter: 'value.n >= 0',
      prefix: 'k',
    });
    end();
  });

  it('are counted from the end where keys are shown in reverse', async () => {
    const { end } = await show('key', true);
    expect([places?.[0], places?.[1], places?.at(-1)]).toEqual([
      { index: 7, value: 'k004992' },
      { index: 391, value: 'k004608' },
      { index: 4_999, value: 'k000000' },
    ]);
    end();
  });

  it('are asked for three at a time once the first is there', async () => {
    let most = 0;
    const waiting: Array<() => void> = [];
    vi.stubGlobal('fetch', async (url: URL) => {
      const offset = Number(new URL(url).searchParams.get('offset'));
      await new Promise<void>((answer) => {
        most = Math.max(most, waiting.push(answer));
      });
      return Response.json({ resources: served.slice(offset, offset + 1) });
    });
    const { end } = await show('n');
    expect(waiting).toHaveLength(1);
    while (waiting.length) {
      waiting.pop()!(); // the newest, so that answers come in another order
      await act(() => vi.advanceTimersByTimeAsync(10));
    }
    expect([most, places?.map(({ index }) => index)]).toEqual([3, offsetsOf(5_000)]);
    end();
  });

  it('are no longer asked for once one of them is refused', async () => {
    vi.stubGlobal('fetch', async (url: URL, { signal }: RequestInit) => {
      signal!.throwIfAborted();
      asked.push(new URL(url));
      const offset = Number(new URL(url).searchParams.get('offset'));
      return Response.json({ resources: served.slice(offset, offset + 1) }, { status: asked.length === 3 ? 503 : 200 });
    });
    const { end } = await show('n');
    expect(asked.length).toBeLessThan(8); // those that were under way
    expect(places).toBeUndefined();
    end();
  });

  it('are asked for again when the number of rows has changed, and rarely when only values have', async () => {
    const count = offsetsOf(5_000).length;
    const { window, live, end } = await show('n');
    await act(() => vi.advanceTimersByTimeAsync(60_000));
    expect(asked).toHaveLength(count);
    window.changes++;
    await act(() => vi.advanceTimersByTimeAsync(200_000));
    expect(asked).toHaveLength(count);
    await act(() => vi.advanceTimersByTimeAsync(100_000));
    expect(asked).toHaveLength(2 * count);
    live.answer(all, 5_001);
    window.changes++;
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    expect(asked).toHaveLength(3 * count);
    end();
  });

  it('are not asked for where there is no room for the bar', async () => {
    cramped = true;
    const { window, end } = await show('n');
    await act(() => vi.advanceTimersByTimeAsync(60_000));
    expect(asked).toEqual([]);
    cramped = false;
    cleanup();
    render(<Shown status={window.status} />);
    await act(() => vi.advanceTimersByTimeAsync(100));
    expect(places).toHaveLength(offsetsOf(5_000).length);
    end();
  });

  it('are not asked for in a hidden tab', async () => {
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    const { end } = await show('n');
    await act(() => vi.advanceTimersByTimeAsync(60_000));
    expect(asked).toEqual([]);
    hidden.mockRestore();
    end();
  });

  it('are not asked for in a short table, nor of a secret', async () => {
    (await show('n', false, all.slice(0, 200))).end();
    (await show('password')).end();
    expect([asked, places]).toEqual([[], undefined]);
  });

  it('are missing where resources are too large to be read for this', async () => {
    const { end } = await show('n', false, [{ ...all[0]!, value: { n: 0, text: 'x'.repeat(70_000) } }, ...all.slice(1)]);
    expect([asked.length, places]).toEqual([1, undefined]);
    end();
  });

  it('are missing while the gateway refuses, and tried again later', async () => {
    status = 429;
    const { end } = await show('n');
    expect([asked.length, places]).toEqual([1, undefined]);
    status = 200;
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    expect(places).toHaveLength(offsetsOf(5_000).length);
    end();
  });
});

describe('the bar of places', () => {
  let jumps: number[];
  const bar = () => screen.getByRole('scrollbar');
  const show = (values: readonly unknown[], top = 0) => {
    jumps = [];
    const places = values.map((value, i) => ({ index: i * 100, value }));
    render(
      <PlacesBar
        places={places}
        column="rss_bytes"
        unit="bytes"
        total={401}
        top={top}
        shown={20}
        controls="grid"
        onJump={(index) => jumps.push(index)}
      />,
    );
  };

  it('says where the table is, in rows and in the values of the column', () => {
    show([0, 512, 1024, 4096, 4096], 150);
    expect(bar().getAttribute('aria-valuenow')).toBe('151');
    expect(bar().getAttribute('aria-valuemax')).toBe('401');
    expect(bar().getAttribute('aria-valuetext')).toBe('row 151 of 401, rss_bytes from 512 B');
    expect(bar().getAttribute('aria-controls')).toBe('grid');
  });

  it('has a length for each number, and the beginning of each text', () => {
    show([-10, 0, 30, undefined, 'idle']);
    const drawn = [...bar().querySelectorAll<HTMLElement>('.place')];
    expect(drawn.map(({ textContent }) => textContent)).toEqual(['-10 B', '0 B', '30 B', 'none', 'idle']);
    expect(drawn.map(({ style }) => style.getPropertyValue('--to'))).toEqual(['25%', '25%', '100%', '', '']);
    expect(drawn.map(({ style }) => style.top)).toEqual(['0.00%', '24.94%', '49.88%', '74.81%', '99.75%']);
  });

  it.each([
    ['ArrowDown', 200],
    ['ArrowUp', 100],
    ['Home', 0],
    ['End', 400],
  ])('scrolls with %s', (key, row) => {
    show([1, 2, 3, 4, 5], 150);
    fireEvent.keyDown(bar(), { key });
    expect(jumps).toEqual([row]);
  });

  it('leaves other keys to the page', () => {
    show([1, 2]);
    expect(fireEvent.keyDown(bar(), { key: 'x' })).toBe(true);
    expect(jumps).toEqual([]);
  });

  it('scrolls to where it is pressed', () => {
    show([1, 2, 3, 4, 5]);
    bar().setPointerCapture = () => {};
    bar().getBoundingClientRect = () => new DOMRect(0, 100, 70, 400);
    fireEvent.pointerDown(bar(), { clientY: 300, pointerId: 1 });
    fireEvent.pointerDown(bar(), { clientY: 900, pointerId: 1 });
    expect(jumps).toEqual([200, 400]);
  });
});
