import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

let answer: { status: number; body: unknown };
let asked: string[];

beforeEach(() => {
  vi.useFakeTimers();
  vi.resetModules();
  asked = [];
  vi.stubGlobal('fetch', (url: URL) => {
    asked.push(url.pathname);
    return Promise.resolve(new Response(JSON.stringify(answer.body), { status: answer.status }));
  });
});

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const client = (operator: boolean) => ({ status: 200, body: { instance: 'one', naming: 'direct', operator } });
const passes = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

async function show(): Promise<void> {
  const { useOperator, useOperatorPages } = await import('../src/gateway/operator');
  const Shown = ({ use }: { use: () => boolean | undefined }) => <p>{String(use())}</p>;
  render(
    <>
      <Shown use={useOperator} />
      <Shown use={useOperatorPages} />
    </>,
  );
}

const shown = () => screen.getAllByRole('paragraph').map(({ textContent }) => textContent);

it('is unknown until the gateway answers, and all components share one request', async () => {
  answer = client(true);
  await show();
  expect(shown()).toEqual(['undefined', 'undefined']);
  await passes(0);
  expect(shown()).toEqual(['true', 'true']);
  expect(asked).toEqual(['/v1/client']);
});

it('notices a change of the configuration', async () => {
  answer = client(false);
  await show();
  await passes(0);
  expect(shown()).toEqual(['false', 'false']);
  answer = client(true);
  await passes(15_000);
  expect(shown()).toEqual(['true', 'true']);
});

it.each([
  ['fails', { status: 500, body: {} }],
  ['is behind something that answers for it', { status: 200, body: {} }],
])('keeps the last answer while the gateway %s, and shows the pages for everybody before any', async (_, failure) => {
  answer = failure;
  await show();
  await passes(0);
  expect(shown()).toEqual(['undefined', 'false']);
  answer = client(true);
  await passes(2_000);
  expect(shown()).toEqual(['true', 'true']);
  answer = failure;
  await passes(15_000);
  expect(shown()).toEqual(['true', 'true']);
});

it.each([401, 403, 404])('takes %i for an answer', async (status) => {
  answer = { status, body: {} };
  await show();
  await passes(0);
  expect(shown()).toEqual(['false', 'false']);
});

it('tells once the gateway has answered, and not before', async () => {
  const { isOperator } = await import('../src/gateway/operator');
  const told = vi.fn();
  answer = { status: 503, body: {} };
  void isOperator().then(told);
  await passes(5_000);
  expect(told).not.toHaveBeenCalled();
  answer = client(true);
  await passes(2_000);
  expect(told).toHaveBeenCalledExactlyOnceWith(true);
});

it('asks no more once no component needs it', async () => {
  answer = client(true);
  await show();
  await passes(0);
  cleanup();
  await passes(60_000);
  expect(asked).toHaveLength(1);
});
