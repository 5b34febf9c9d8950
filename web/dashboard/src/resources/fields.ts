import type { Resource } from '@watchtide/client';
import { brief } from './brief';
import { columnID } from './column';
import type { Field } from './field';
import { ageWidth, isTime, type Unit, unitOf, withUnit } from './format';
import { isSecretData, withLeads } from './kubernetes';
import { isNumber } from './number';
import { isObject, type Path } from './path';
import { isSecret } from './secret';
import { severityOf } from './severity';

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
  times = 0;
  secrets = 0;
  keys = 0; // how often the value is the key, or a part of it
  readonly widths: number[] = [];
  readonly texts = new Set<string>();

  readonly unit: Unit | undefined;

  constructor(readonly path: Path) {
    this.unit = unitOf(path.at(-1) ?? '');
  }

  add(value: unknown, key: string, secret: boolean): void {
    const isAge = isTime(value);
    const text = withUnit(value, this.unit) ?? brief(value, 80);
    this.times += Number(isAge);
    this.secrets += Number(secret || isSecret(this.path, value));
    this.count++;
    this.numbers += Number(isNumber(value));
    this.characters += text.length;
    this.widths.push(isAge ? ageWidth : text.length);
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
      unit: this.unit,
      time: this.times === this.count,
      secret: this.secrets > 0,
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
  for (const { key, value } of sample) collect(value, [], key, tallies, false);
  return withLeads(
    [...tallies.values()].map((tally) => tally.field(sample.length)),
    sample,
  );
}

function collect(value: unknown, path: Path, key: string, tallies: Map<string, Tally>, secret: boolean): void {
  if (isObject(value) && path.length < maxDepth && Object.keys(value).length > 0) {
    for (const [name, inner] of Object.entries(value)) {
      collect(inner, [...path, name], key, tallies, secret || (path.length === 0 && isSecretData(value, name)));
    }
    return;
  }
  const id = columnID(path);
  let tally = tallies.get(id);
  if (!tally) {
    if (tallies.size >= maxFields) return;
    tallies.set(id, (tally = new Tally(path)));
  }
  tally.add(value, key, secret);
}

/** Returns the width of the keys in characters, for all but the longest of the sample. */
export function keyWidth(sample: readonly Resource[]): number {
  return usualWidth(sample.map(({ key }) => key.length));
}

function usualWidth(widths: readonly number[]): number {
  const sorted = [...widths].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.95)] ?? 0;
}

/** Returns how much a field tells at a glance, compared with other fields; most of all one with a lead. */
export const telling = ({ worth, state, enumeration, lead }: Field): number =>
  lead === undefined ? worth * (state ? 4 : enumeration ? 2 : 1) : 100 - lead;

/** The room for columns: how many, and whether only the first ones are in view. */
export interface Room {
  readonly columns: number;
  readonly narrow: boolean;
}

/**
 * Returns the initial columns: the key, those with a lead, and the most informative of the other fields, in their own
 * order; where there is little room, the most telling ones first. Never secrets.
 */
export function pick(fields: readonly Field[], { columns, narrow }: Room): string[] {
  const leads = fields.filter(({ lead }) => lead !== undefined).sort((a, b) => a.lead! - b.lead!);
  const rest = fields.filter(({ lead, secret }) => lead === undefined && !secret);
  const others = pickOthers(rest, { columns: Math.max(0, columns - leads.length), narrow });
  return [...(leads.some(({ isKey }) => isKey) ? [] : ['key']), ...leads.map(({ id }) => id), ...others];
}

function pickOthers(fields: readonly Field[], { columns, narrow }: Room): string[] {
  const best = [...fields].sort((a, b) => b.worth - a.worth).filter(({ worth }, i) => i < columns && (i < fewest || worth > leastWorth));
  const shown = narrow ? best.sort((a, b) => telling(b) - telling(a)) : fields.filter((field) => best.includes(field));
  return shown.map(({ id }) => id);
}
