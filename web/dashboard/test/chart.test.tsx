import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { changeSettings } from '../src/app/settings';
import { Chart } from '../src/charts/Chart';
import { count } from '../src/text/number';

const drawing = vi.hoisted(() => ({ setData: vi.fn(), destroy: vi.fn(), redraw: vi.fn() }));
const plot = vi.hoisted(() => vi.fn());
vi.mock('../src/charts/plot', () => ({ plot: plot.mockReturnValue(drawing), drawn: (data: unknown) => data }));

const of = (...values: number[]) => ({ times: values.map((_, i) => i * 1000), curves: [{ name: 'notes', values }] });
const chart = (data: ReturnType<typeof of>) => <Chart title="Subscribers" summary="notes 7" format={count} data={data} />;

afterEach(() => {
  cleanup();
  vi.clearAllMocks();
});

describe('a chart', () => {
  it('has a description, and shows the newest value of each curve', () => {
    render(chart(of(3, 7)));
    expect(screen.getByRole('img', { name: 'Subscribers: notes 7' })).toBeTruthy();
    expect(screen.getByRole('figure', { name: 'Subscribers' }).querySelector('li')?.textContent).toBe('notes 7');
  });
  it('is created once, and updated with new data', () => {
    const { rerender, unmount } = render(chart(of(3)));
    rerender(chart(of(3, 8)));
    expect(plot).toHaveBeenCalledTimes(1);
    expect(drawing.setData).toHaveBeenLastCalledWith(of(3, 8));
    unmount();
    expect(drawing.destroy).toHaveBeenCalledTimes(1);
  });
  it('is painted again when the theme changes', () => {
    render(chart(of(3)));
    changeSettings({ theme: 'dark' });
    expect(drawing.redraw).toHaveBeenCalledTimes(1);
    expect(document.documentElement.dataset['theme']).toBe('dark');
    changeSettings({ theme: 'system' });
  });
});
