import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { useMethods } from '../../src/editor/useMethods';

function Shown({ asked = true }: { asked?: boolean }) {
  const { put, delete: deletes } = useMethods({ watch: 'notes', key: 'a/b' }, asked);
  return <p>{`${put} ${deletes}`}</p>;
}

async function show(answer: () => Promise<Response>, asked = true) {
  const fetch = vi.fn((_: URL, __?: RequestInit) => answer());
  vi.stubGlobal('fetch', fetch);
  await act(async () => render(<Shown asked={asked} />));
  await act(async () => {});
  return fetch;
}

const text = () => screen.getByRole('paragraph').textContent;
const allows = (Allow: string) => async () => new Response(null, { headers: { Allow } });

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

describe('what a user may do', () => {
  it('is what the gateway allows', async () => {
    const fetch = await show(allows('GET, HEAD, PUT'));
    expect(text()).toBe('true false');
    const [url, init] = fetch.mock.calls[0]!;
    expect([url.pathname, init?.method]).toEqual(['/v1/watches/notes/resources/a%2Fb', 'HEAD']);
  });

  it('is everything where the gateway says nothing', async () => {
    await show(async () => new Response(null));
    expect(text()).toBe('true true');
    cleanup();
    await show(async () => Promise.reject(new TypeError('offline')));
    expect(text()).toBe('true true');
    cleanup();
    await show(async () => new Response(null, { status: 404, headers: { Allow: 'GET' } }));
    expect(text()).toBe('true true');
  });

  it('is not asked without need', async () => {
    expect(await show(allows('GET'), false)).not.toHaveBeenCalled();
    expect(text()).toBe('true true');
  });
});
