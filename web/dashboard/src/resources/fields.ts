import type { Resource } from '@watchtide/client';
import { brief } from './brief';
import { columnID } from './column';
import { isNumber } from './number';
import { isObject, type Path } from './path';
import { severityOf } from './severity';

/** A field of some resources. */
export interface Field {
  readonly id: string;
  /** Numbers are aligned to the right. */
  readonly numeric: boolean;
  /** A text with few distinct values, which are shown as badges. */
  readonly enumeration: boolean;
  /** An enumeration of well-known states. */
  readonly state: boolean;
  /** The width in characters, for all but the longest values of the sample. */
  readonly width: number;
  /** How informative it is, compared with other fields. */
  readonly worth: number;
}

const maxDepth = 4;
const maxFields = 200;
const fewest = 6; // so many columns are filled with what there is
const leastWorth = 0.15; // of further columns
const maxWords = 12; // of an enumeration
const maxWord = 24; // characters

/** Statistics of one field, collected from a sample. */
class Tally {
  count = 0;
  numbers = 0;
  strings = 0;
  characters = 0;
  keys = 0; // how often the value is the key, or a part of it
  readonly widths: number[] = [];
  readonly texts = new Set<string>();

  constructor(readonly path: Path) {}

  add(value: unknown, key: string): void {
    const text = brief(value, 80);
    this.count++;
    this.numbers += Number(isNumber(value));
    this.characters += text.length;
    this.widths.push(text.length);
    this.texts.add(text);
    this.strings += Number(typeof value === 'string');
    this.keys += Number(text === key || key.split(/[/.:]/).includes(text));
  }

  field(of: number): Field {
    return {
      id: this.path.length === 0 ? 'value' : columnID(this.path),
      numeric: this.numbers * 2 > this.count,
      enumeration: this.#isEnumeration(),
      state: this.#isEnumeration() && [...this.texts].filter((word) => severityOf(word)).length * 2 > this.texts.size,
      width: usualWidth(this.widths),
      worth: this.#worth(of),
    };
  }

  #isEnumeration(): boolean {
    const words = [...this.texts];
    if (this.strings < this.count || this.path.length === 0 || words.length > maxWords) return false;
    if (words.some((word) => word === '' || word.length > maxWord)) return false;
    return this.count >= 3 * words.length || words.every((word) => severityOf(word) !== undefined);
  }

  // A column is less informative if it is often empty, the same in every row, equal to
  // the key, too long to be read at a glance, or deeply nested.
  #worth(of: number): number {
    if (this.path.length === 0) return 1; // or some rows would show nothing
    const present = this.count / of;
    const differs = this.keys === this.count ? 0.1 : this.texts.size > 1 || of < 3 ? 1 : 0.4;
    const short = this.characters / this.count <= 40 ? 1 : 0.4;
    return present * differs * short * 0.95 ** this.path.length;
  }
}

/** Returns the fields of a sample of resources, in order of appearance. */
export function fieldsOf(sample: readonly Resource[]): Field[] {
  const tallies = new Map<string, Tally>();
  for (const { key, value } of sample) collect(value, [], key, tallies);
  return [...tallies.values()].map((tally) => tally.field(sample.length));
}

function collect(value: unknown, path: Path, key: string, tallies: Map<string, Tally>): void {
  if (isObject(value) && path.length < maxDepth && Object.keys(value).length > 0) {
    for (const [name, inner] of Object.entries(value)) collect(inner, [...path, name], key, tallies);
    return;
  }
  const id = columnID(path);
  let tally = tallies.get(id);
  if (!tally) {
    if (tallies.size >= maxFields) return;
    tallies.set(id, (tally = new Tally(path)));
  }
  tally.add(value, key);
}

/** Returns the width of the keys in characters, for all but the longest of the sample. */
export function keyWidth(sample: readonly Resource[]): number {
  return usualWidth(sample.map(({ key }) => key.length));
}

function usualWidth(widths: readonly number[]): number {
  const sorted = [...widths].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 0;
}

/** Returns how much a field tells at a glance, compared with other fields. */
export const telling = ({ worth, state, enumeration }: Field): number => worth * (state ? 4 : enumeration ? 2 : 1);

/** The room for columns: how many, and whether only the first ones are in view. */
export interface Room {
  readonly columns: number;
  readonly narrow: boolean;
}

/**
 * Returns the initial columns: the key, and the most informative fields, in their own order;
 * where there is little room, the most telling ones first.
 */
export function pick(fields: readonly Field[], { columns, narrow }: Room): string[] {
  const best = [...fields].sort((a, b) => b.worth - a.worth).filter(({ worth }, i) => i < columns && (i < fewest || worth > leastWorth));
  const shown = narrow ? best.sort((a, b) => telling(b) - telling(a)) : fields.filter((field) => best.includes(field));
  return ['key', ...shown.map(({ id }) => id)];
}
