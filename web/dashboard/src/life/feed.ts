import type { HistoricChange } from '@watchtide/protocol';
import { brief } from '../resources/brief';

/** A change of a feed, and the version of its resource before it, if that was loaded. */
export interface Item {
  readonly change: HistoricChange;
  readonly before: HistoricChange | undefined;
}

const resourceOf = ({ key, key_encoding }: HistoricChange) => `${key_encoding ?? ''} ${key}`;

/** Returns the changes, newest first as they are given, each with the version before it. */
export function itemsOf(changes: readonly HistoricChange[]): readonly Item[] {
  const last = new Map<string, HistoricChange>();
  const items: Item[] = [];
  for (let i = changes.length - 1; i >= 0; i--) {
    const change = changes[i]!;
    items.push({ change, before: last.get(resourceOf(change)) });
    last.set(resourceOf(change), change);
  }
  return items.reverse();
}

const searched = 2000; // characters of a value

/** Returns the items whose key, type or value has all words of a text, whatever their case. */
export function matching(items: readonly Item[], text: string): readonly Item[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return items;
  return items.filter(({ change: { key, type, value } }) => {
    const all = `${key} ${type} ${brief(value, searched)}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
