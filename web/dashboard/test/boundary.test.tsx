import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { Boundary, lazily } from '../src/app/Boundary';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

async function show(Shown: React.ComponentType): Promise<void> {
  vi.spyOn(console, 'error').mockImplementation(() => {}); // React logs what a boundary catches
  await act(async () => {
    render(
      <>
        <Boundary>
          <Shown />
        </Boundary>
        <p>the rest</p>
      </>,
    );
  });
}

it('offers to reload the page if its file is gone, and the rest goes on', async () => {
  await show(lazily(() => Promise.reject(new TypeError('Failed to fetch dynamically imported module'))));
  expect(screen.getByRole('alert').textContent).toContain('could not be loaded');
  screen.getByRole('button', { name: 'Reload' });
  screen.getByText('the rest');
});

it('is shown as soon as it is loaded, and at once when it is shown again', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }); // no time passes
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', false);
  try {
    let loads = 0;
    const Part = lazily(async () => {
      loads++;
      return () => <p>the part</p>;
    });
    const element = (
      <Boundary>
        <Part />
      </Boundary>
    );
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const { unmount } = render(element);
    for (let turns = 0; turns < 1_000 && !screen.queryByText('the part'); turns++) await turn();
    screen.getByText('the part');
    unmount();
    render(element);
    screen.getByText('the part');
    expect(loads).toBe(1);
  } finally {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  }
});

it('says what has failed in it, and the rest goes on', async () => {
  await show(() => {
    throw new TypeError('watches is undefined');
  });
  expect(screen.getByRole('alert').textContent).toContain('This part of the page has failed: watches is undefined.');
  screen.getByRole('button', { name: 'Reload' });
  screen.getByText('the rest');
});
