import type { Resource } from '@watchtide/client';
import { brief } from './brief';
import { columnID } from './column';
import { isNumber } from './number';
import { isObject, type Path } from './path';

/** A field that some resources have. */
export interface Field {
  readonly id: string;
  /** Numbers stand at the right. */
  readonly numeric: boolean;
  /** How many characters it takes, for all but the longest of the sample. */
  readonly width: number;
  /** How much it tells of a resource, to compare with others. */
  readonly worth: number;
}

const deepest = 4;
const mostFields = 200;
const mostColumns = 6;

/** What is known of one field while resources are looked at. */
class Tally {
  count = 0;
  numbers = 0;
  characters = 0;
  keys = 0; // how often it is the key once more
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
    this.keys += Number(text === key);
  }

  field(of: number): Field {
    return {
      id: this.path.length === 0 ? 'value' : columnID(this.path),
      numeric: this.numbers * 2 > this.count,
      width: usual(this.widths),
      worth: this.#worth(of),
    };
  }

  // A column that is empty, or the same in every row, or the key once more, or too
  // long to be read in passing, or deep inside, tells less.
  #worth(of: number): number {
    if (this.path.length === 0) return 1; // else there would be rows that show nothing
    const present = this.count / of;
    const differs = this.keys === this.count ? 0.1 : this.texts.size > 1 || of < 3 ? 1 : 0.4;
    const short = this.characters / this.count <= 40 ? 1 : 0.4;
    return present * differs * short * 0.95 ** this.path.length;
  }
}

/** The fields of a sample of resources, in the order in which they come. */
export function fieldsOf(sample: readonly Resource[]): Field[] {
  const tallies = new Map<string, Tally>();
  for (const { key, value } of sample) collect(value, [], key, tallies);
  return [...tallies.values()].map((tally) => tally.field(sample.length));
}

function collect(value: unknown, path: Path, key: string, tallies: Map<string, Tally>): void {
  if (isObject(value) && path.length < deepest && Object.keys(value).length > 0) {
    for (const [name, inner] of Object.entries(value)) collect(inner, [...path, name], key, tallies);
    return;
  }
  const id = columnID(path);
  let tally = tallies.get(id);
  if (!tally) {
    if (tallies.size >= mostFields) return;
    tallies.set(id, tally = new Tally(path));
  }
  tally.add(value, key);
}

/** How many characters the keys of the sample take, for all but the longest. */
export function keyWidth(sample: readonly Resource[]): number {
  return usual(sample.map(({ key }) => key.length));
}

function usual(widths: readonly number[]): number {
  const sorted = [...widths].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 0;
}

/** The columns to begin with: the key, and the fields that tell most, in their own order. */
export function pick(fields: readonly Field[]): string[] {
  const best = [...fields].sort((a, b) => b.worth - a.worth).slice(0, mostColumns);
  return ['key', ...fields.filter((field) => best.includes(field)).map(({ id }) => id)];
}
