import { useSyncExternalStore } from 'react';

/** How the page looks; remembered in this browser. */
export interface Settings {
  readonly theme: 'system' | 'light' | 'dark';
  readonly density: 'comfortable' | 'compact';
}

const name = 'watchtide settings';
const defaults: Settings = { theme: 'system', density: 'comfortable' };
const dark = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
let settings = defaults;

/** Takes over the remembered settings, and follows the theme of the system and the settings of other tabs. */
export function beginSettings(): void {
  settings = remembered();
  apply();
  dark.addEventListener('change', apply);
  addEventListener('storage', ({ key }) => {
    if (key === name || key === null) become(remembered());
  });
}

/** Changes settings, also for the next visit. */
export function changeSettings(change: Partial<Settings>): void {
  become({ ...settings, ...change });
  try {
    localStorage.setItem(name, JSON.stringify(settings));
  } catch {
    // the browser keeps nothing: the settings last as long as the page
  }
}

/** Returns the settings; the component is rendered again when they change. */
export const useSettings = (): Settings => useSyncExternalStore(onSettings, () => settings);

/** Calls changed after each change of the look, until the returned function is called. */
export function onSettings(changed: () => void): () => void {
  listeners.add(changed);
  return () => void listeners.delete(changed);
}

function become(next: Settings): void {
  settings = next;
  apply();
}

function apply(): void {
  const { theme, density } = settings;
  const root = document.documentElement.dataset;
  root['theme'] = theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme;
  root['density'] = density;
  for (const listener of listeners) listener();
}

function remembered(): Settings {
  try {
    const found = JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Settings> | null;
    return {
      theme: found?.theme === 'light' || found?.theme === 'dark' ? found.theme : 'system',
      density: found?.density === 'compact' ? 'compact' : 'comfortable',
    };
  } catch {
    return defaults;
  }
}
