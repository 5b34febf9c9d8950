import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import { DisplayMenu } from '../src/app/DisplayMenu';
import { beginSettings, changeSettings } from '../src/app/settings';
import { fullMoment, moment } from '../src/text/moment';

const look = () => ({ ...document.documentElement.dataset });

afterEach(() => {
  cleanup();
  act(() => changeSettings({ theme: 'system', density: 'comfortable' }));
  localStorage.clear();
});

describe('the look of the page', () => {
  it('is chosen in a menu, and remembered', () => {
    render(<DisplayMenu />);
    const button = screen.getByRole('button', { name: 'Display' });
    fireEvent.click(button);
    fireEvent.click(screen.getByRole('radio', { name: 'Dark' }));
    fireEvent.click(screen.getByRole('radio', { name: 'Compact' }));
    expect(look()).toMatchObject({ theme: 'dark', density: 'compact' });
    expect(JSON.parse(localStorage.getItem('watchtide settings')!)).toEqual({ theme: 'dark', density: 'compact' });
    fireEvent.keyDown(button, { key: 'Escape' });
    expect([button.getAttribute('aria-expanded'), document.activeElement]).toEqual(['false', button]);
  });

  it('is what was remembered, or the usual one for what is not understood', () => {
    localStorage.setItem('watchtide settings', '{"theme":"dark","density":"huge"}');
    beginSettings();
    expect(look()).toMatchObject({ theme: 'dark', density: 'comfortable' });
    localStorage.setItem('watchtide settings', 'no JSON');
    dispatchEvent(new StorageEvent('storage', { key: 'watchtide settings' }));
    expect(look()).toMatchObject({ theme: 'light', density: 'comfortable' });
  });
});

describe('a time', () => {
  const evening = new Date(2026, 10, 25, 21, 4, 5).getTime();

  it('has 24 hours, and a date unless that is today', () => {
    expect(moment(evening, evening)).toBe('21:04:05');
    expect(moment(evening, evening + 86_400_000)).toBe(fullMoment(evening));
    expect(fullMoment(evening)).toContain('2026');
    expect(fullMoment(evening)).toContain('21:04:05');
    expect(fullMoment(Number.NaN)).toBe('');
  });

  it('begins at midnight with 0', () => {
    const midnight = new Date(2026, 10, 25, 0, 0, 1).getTime();
    expect(moment(midnight, midnight)).toBe('00:00:01');
  });
});
