import { useSyncExternalStore } from 'react';
import { tag } from '../gateway/session';

/** A page of a watch that the user has named: everything that it shows is in its URL. */
export interface SavedView {
  readonly name: string;
  /** The fragment of the URL. */
  readonly hash: string;
}

export const maxViews = 50;
export const maxName = 80;
const maxHash = 4000;

const prefix = 'watchtide views ';
const place = () => prefix + (tag() ?? '');
const listeners = new Set<() => void>();
let read: { readonly text: string; readonly views: readonly SavedView[] } = { text: '', views: [] };

/** Returns the saved views of the user; the component is rendered again when they change. */
export const useSavedViews = (): readonly SavedView[] => useSyncExternalStore(subscribe, views);

/** Returns the saved views of the user. */
export function views(): readonly SavedView[] {
  const text = stored();
  if (text !== read.text) read = { text, views: parse(text) };
  return read.views;
}

/** Saves a view, in place of one with the same name. Returns why it could not; empty if it could. */
export function saveView(view: SavedView): string {
  const name = view.name.trim();
  const others = views().filter((other) => other.name !== name);
  if (name === '') return 'A view needs a name.';
  if (name.length > maxName) return `The name has more than ${maxName} characters.`;
  if (view.hash.length > maxHash) return 'The filter is too long to be saved.';
  if (others.length >= maxViews) return `There are ${maxViews} saved views: delete one first.`;
  return write([...others, { ...view, name }]);
}

/** Renames a view. Returns why it could not; empty if it could. */
export function renameView(from: string, to: string): string {
  const name = to.trim();
  if (name === '' || name.length > maxName) return `A name has 1 to ${maxName} characters.`;
  if (name !== from && views().some((view) => view.name === name)) return `There is a view “${name}” already.`;
  return write(views().map((view) => (view.name === from ? { ...view, name } : view)));
}

export const deleteView = (name: string): string => write(views().filter((view) => view.name !== name));

/** Erases the saved views of all users of this browser. */
export function forgetViews(): void {
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(prefix)) localStorage.removeItem(name);
  } catch {
    // the browser keeps nothing
  }
  tell();
}

function write(views: readonly SavedView[]): string {
  try {
    localStorage.setItem(place(), JSON.stringify(views));
  } catch {
    return 'The browser does not allow this page to keep anything.';
  }
  tell();
  return '';
}

function stored(): string {
  try {
    return localStorage.getItem(place()) ?? '';
  } catch {
    return '';
  }
}

// What is stored may be of another version, or written by something else.
function parse(text: string): SavedView[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.filter(isView).slice(0, maxViews) : [];
  } catch {
    return [];
  }
}

function isView(found: unknown): found is SavedView {
  const { name, hash } = (found ?? {}) as Partial<SavedView>;
  return typeof name === 'string' && name.length <= maxName && typeof hash === 'string' && hash.startsWith('#/watches/');
}

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}
