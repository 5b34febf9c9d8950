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

it('says what has failed in it, and the rest goes on', async () => {
  await show(() => {
    throw new TypeError('watches is undefined');
  });
  expect(screen.getByRole('alert').textContent).toContain('This part of the page has failed: watches is undefined.');
  screen.getByRole('button', { name: 'Reload' });
  screen.getByText('the rest');
});
