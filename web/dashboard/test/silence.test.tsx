import { act, cleanup, render } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useReported } from '../src/app/troubles';
import { useWatches } from '../src/gateway/watches';

let reported: ReturnType<typeof useReported> = [];
function Page() {
  useWatches();
  reported = useReported();
  return null;
}

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
const answers = (answer: () => Promise<Response>) => vi.stubGlobal('fetch', answer);
const well = () => Promise.resolve(Response.json({ watches: [] }));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it('a gateway that answers is not reported', async () => {
  answers(well);
  render(<Page />);
  await pass(60_000);
  expect(reported).toEqual([]);
});

it('a gateway that refuses connections is offline since its last answer', async () => {
  answers(well);
  render(<Page />);
  await pass(3000);
  const last = Date.now();
  answers(() => Promise.reject(new TypeError('Failed to fetch')));
  await pass(5000);
  expect(reported).toMatchObject([{ what: 'The gateway', state: 'offline', since: last, reason: 'it does not answer (Failed to fetch)' }]);
  answers(well);
  await pass(1000);
  expect(reported).toEqual([]);
});

it('a gateway that accepts requests but does not answer is noticed as well', async () => {
  answers(well);
  render(<Page />);
  await pass(1000);
  const last = Date.now();
  answers(() => new Promise(() => {}));
  await pass(9000);
  expect(reported).toMatchObject([{ state: 'offline', since: last }]);
});

it('a pause while the page is hidden is not reported', async () => {
  answers(well);
  render(<Page />);
  await pass(1000);
  const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
  await pass(600_000);
  expect(reported).toEqual([]);
  hidden.mockRestore();
  document.dispatchEvent(new Event('visibilitychange'));
  await pass(2000);
  expect(reported).toEqual([]);
});
