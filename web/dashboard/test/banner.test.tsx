import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Banner } from '../src/app/Banner';
import { type Trouble, useTroubles } from '../src/app/troubles';

const stale: Trouble = { what: 'notes', state: 'stale', since: Date.parse('2026-01-02T03:04:05Z'), reason: 'no connection' };

function Page({ troubles }: { troubles: readonly Trouble[] }) {
  useTroubles(troubles);
  return <Banner />;
}

function show(...troubles: Trouble[]) {
  const { rerender } = render(<Page troubles={troubles} />);
  return (...next: Trouble[]) => rerender(<Page troubles={next} />);
}

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
const banner = () => screen.queryByTestId('stale-banner');
const lines = () => [...screen.getByTestId('stale-banner').querySelectorAll('p')].map((line) => line.textContent);

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-01-02T03:05:00Z') });
  location.hash = '#/';
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('the banner', () => {
  it('is empty while nothing may be stale', () => {
    show();
    expect(banner()).toBeNull();
  });
  it('shows the watch, the start time and the reason', () => {
    show(stale);
    expect(lines()[0]).toMatch(/^notes may be out of date, since .*:04:05.* \(55 s\): no connection$/);
    expect(screen.getByRole('alert').dataset['state']).toBe('stale');
    expect(banner()?.querySelector('time')?.dateTime).toBe('2026-01-02T03:04:05.000Z');
  });
  it('hides text that changes each second from screen readers', async () => {
    show(stale);
    const read = () => [...banner()!.querySelectorAll('p > :not([aria-hidden])')].map((node) => node.textContent);
    const before = read();
    await pass(3000);
    expect(lines()[0]).toContain('(58 s)');
    expect(read()).toEqual(before);
  });
  it('keeps the line of a trouble whose reason changes, so that it is not read out again', () => {
    const report = show(stale);
    const line = banner()!.querySelector('p');
    report({ ...stale, reason: 'attempt 2' });
    expect(banner()!.querySelector('p')).toBe(line);
    expect(line?.textContent).toContain('attempt 2');
  });
  it('shows the worst trouble first, and the number of others', () => {
    show(...['a', 'b', 'c', 'd'].map((what) => ({ ...stale, what })), { ...stale, what: 'The gateway', state: 'offline' });
    expect(screen.getByRole('alert').dataset['state']).toBe('offline');
    expect(lines()[0]).toContain('The gateway');
    expect(lines()[4]).toBe('and 1 more');
    expect(screen.getByRole('link', { name: 'and 1 more' }).getAttribute('href')).toBe('#/watches?sort=state'); // "#/" is another page for operators
  });
  it('shows the hidden characters of a reason as escapes', () => {
    show({ ...stale, reason: 'no \u202eetad' });
    expect(lines()[0]).toMatch(/: no \\u202eetad$/);
  });
  it('unfolds a reason that is cut, and folds it again', () => {
    vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(200);
    vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(60);
    show(stale);
    const button = screen.getByRole('button', { name: 'More of the reason' });
    button.focus();
    fireEvent.click(button);
    expect(button.getAttribute('aria-expanded')).toBe('true');
    expect(banner()!.querySelector('.line[data-open]')).not.toBeNull();
    expect(document.activeElement).toBe(button);
    fireEvent.click(button);
    expect(button.getAttribute('aria-expanded')).toBe('false');
  });
  it('offers no unfolding of a reason that is shown whole', () => {
    show(stale);
    expect(screen.queryByRole('button')).toBeNull();
  });
  it('omits a first load unless it takes long', async () => {
    show({ ...stale, state: 'priming' });
    expect(banner()).toBeNull();
    await pass(700);
    expect(banner()?.dataset['state']).toBe('priming');
  });
});

describe('a recovery', () => {
  it('is announced once, politely, and not for long', async () => {
    const report = show(stale);
    report();
    expect(banner()).toBeNull();
    expect(screen.getByRole('status').textContent).toBe('');
    await pass(1500);
    expect(screen.getByRole('status').textContent).toBe('What you see is up to date again.');
    await pass(6000);
    expect(screen.getByRole('status').textContent).toBe('');
  });
  it('is not announced after a long first load', async () => {
    const become = show({ ...stale, state: 'priming' });
    await pass(5000);
    expect(banner()).not.toBeNull();
    become();
    await pass(5000);
    expect(screen.getByRole('status').textContent).toBe('');
  });
  it('is not announced until a first load is also complete', async () => {
    const begins: Trouble = { ...stale, what: 'nodes', state: 'priming' };
    const become = show(stale, begins);
    await pass(1000);
    become(begins);
    await pass(5000);
    expect(screen.getByRole('status').textContent).toBe('');
    become();
    await pass(3000);
    expect(screen.getByRole('status').textContent).not.toBe('');
  });
  it('is not announced if it does not last', async () => {
    const report = show(stale);
    report();
    await pass(1000);
    report(stale);
    await pass(10_000);
    expect(screen.getByRole('status').textContent).toBe('');
  });
  it('is not announced on another page', async () => {
    const report = show(stale);
    act(() => {
      location.hash = '#/subscribers';
      dispatchEvent(new HashChangeEvent('hashchange'));
    });
    report();
    await pass(3000);
    expect(screen.getByRole('status').textContent).toBe('');
  });
});
