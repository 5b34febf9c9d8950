import { useEffect, useMemo, useState } from 'react';
import { type Column, column, parseColumns } from './column';
import type { Field } from './field';
import { fieldsOf, keyWidth, pick, type Room, telling } from './fields';
import type { Unit } from './format';
import { useRoom } from './room';
import type { TableModel } from './table';

/** A column of the table, with its layout. */
export interface ShownColumn extends Column {
  readonly numeric: boolean;
  readonly enumeration: boolean;
  readonly unit: Unit | undefined;
  /** Times, which are shown as ages. */
  readonly time: boolean;
  /** It names the row: the key, or what takes its place. */
  readonly naming: boolean;
  /** In characters. */
  readonly width: number;
  /** Shows the field of the row that changed last instead, once one has. */
  readonly news: boolean;
}

export interface Columns {
  readonly shown: readonly ShownColumn[];
  /** The names of all available columns. */
  readonly known: readonly string[];
  readonly fields: readonly Field[];
}

/** Returns the names of the columns in which the gateway searches for a text. */
export const searchedIn = (columns: readonly ShownColumn[]): string[] =>
  columns.filter(({ id, numeric }) => !numeric && id !== 'key').map(({ id }) => id);

const sampleSize = 200;
const revisionWidth = 12;
const newsWidth = 20;
const fewest = 2; // columns

/** The fields of a sample of the resources. */
interface Sample {
  /** The number of resources at the time. */
  readonly size: number;
  readonly fields: readonly Field[];
  readonly keyWidth: number;
}

/** Returns the columns in the URL, or else the most informative ones that a table of this width, in characters, can show whole. */
export function useColumns(model: TableModel, chosen: string | null, width: number): Columns {
  const sample = useSample(model);
  const room = useRoom();
  return useMemo(() => {
    const { fields } = sample;
    const ids = chosen === null ? initial(sample, room, width) : parseColumns(chosen);
    const known = new Set(['key', ...fields.map(({ id }) => id), 'value', 'revision', ...ids]);
    const all = (ids.length > 0 ? ids : ['key']).map((id) => shown(id, sample));
    return { shown: chosen === null && room.narrow ? withNews(all) : all, known: [...known], fields };
  }, [sample, chosen, room, width]);
}

// While there are few resources, the sample is taken again when their number changes.
// Columns that come and go would be annoying: they change only if there are twice as
// many resources, or a new field.
function useSample(model: TableModel): Sample {
  const [sample, setSample] = useState<Sample>({ size: 0, fields: [], keyWidth: 0 });
  useEffect(() => {
    let known: Sample = { size: 0, fields: [], keyWidth: 0 };
    let seen = 0;
    const update = () => {
      const { total } = model.rows;
      if (total === seen || total === 0 || known.size >= sampleSize) return;
      seen = total;
      const some = model.rows.sample(sampleSize);
      const fields = fieldsOf(some);
      if (total < 2 * known.size && fields.every(({ id }) => known.fields.some((field) => field.id === id))) return;
      known = { size: total, fields, keyWidth: keyWidth(some) };
      setSample(known);
    };
    update();
    return model.subscribe(update);
  }, [model]);
  return sample;
}

// On a phone, the table is scrolled sideways. Otherwise the least telling columns are left out
// until the others fit, but not the last one.
function initial(sample: Sample, room: Room, width: number): string[] {
  const ids = pick(sample.fields, room);
  if (room.narrow) return ids;
  const widthOf = (id: string) => shown(id, sample).width;
  let excess = ids.reduce((sum, id) => sum + widthOf(id), 0) - width;
  const worth = new Map(sample.fields.map((field) => [field.id, telling(field)]));
  const left = new Set(ids);
  for (const id of ids.slice(1).sort((a, b) => worth.get(a)! - worth.get(b)!)) {
    if (excess <= 0 || left.size <= fewest) break;
    excess -= widthOf(id);
    left.delete(id);
  }
  return [...left];
}

function shown(id: string, { fields, keyWidth }: Sample): ShownColumn {
  const field = fields.find((field) => field.id === id);
  const { title, get } = { ...column(id), ...(field?.title && { title: field.title }) };
  const content = id === 'key' ? keyWidth : id === 'revision' ? revisionWidth : (field?.width ?? 12);
  const enumeration = field?.enumeration ?? false;
  const width = Math.min(Math.max(content + (enumeration ? 4 : 0), title.length + 3, 7), 36) + 2;
  return {
    id,
    title,
    get,
    numeric: id === 'revision' || (field?.numeric ?? false),
    enumeration,
    unit: field?.unit,
    time: field?.time ?? false,
    naming: id === 'key' || (field?.isKey ?? false),
    width,
    news: false,
  };
}

// A phone shows two columns, of which the second one tells what happens.
const withNews = (columns: readonly ShownColumn[]) =>
  columns.map((column, i) => (i === 1 ? { ...column, width: Math.max(column.width, newsWidth), news: true } : column));
