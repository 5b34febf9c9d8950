import { useEffect, useMemo, useState } from 'react';
import { column, parseColumns, type Column } from './column';
import { fieldsOf, keyWidth, pick, type Field } from './fields';
import type { Sheet } from './model';

/** A column as the table draws it. */
export interface ShownColumn extends Column {
  readonly numeric: boolean;
  /** In characters. */
  readonly width: number;
}

export interface Columns {
  readonly shown: readonly ShownColumn[];
  /** The names of all columns that can be chosen. */
  readonly known: readonly string[];
}

const sampleSize = 200;
const revisionWidth = 12;

/** What is known of the resources from looking at some of them. */
interface Sample {
  /** How many there were in all. */
  readonly size: number;
  readonly fields: readonly Field[];
  readonly keyWidth: number;
}

/** The columns that the URL names, or else those that tell most. */
export function useColumns(sheet: Sheet, chosen: string | null): Columns {
  const sample = useSample(sheet);
  return useMemo(() => {
    const { fields } = sample;
    const ids = chosen === null ? pick(fields) : parseColumns(chosen);
    const known = new Set(['key', ...fields.map(({ id }) => id), 'value', 'revision', ...ids]);
    return { shown: (ids.length > 0 ? ids : ['key']).map((id) => shown(id, sample)), known: [...known] };
  }, [sample, chosen]);
}

// While there are few, the resources are looked at again when there are more or
// fewer. Columns that come and go would be in the way: they are others only when
// there are twice as many resources, or a field that was not known.
function useSample(sheet: Sheet): Sample {
  const [sample, setSample] = useState<Sample>({ size: 0, fields: [], keyWidth: 0 });
  useEffect(() => {
    let known: Sample = { size: 0, fields: [], keyWidth: 0 };
    let looked = 0;
    const look = () => {
      const { total } = sheet.rows;
      if (total === looked || total === 0 || known.size >= sampleSize) return;
      looked = total;
      const some = sheet.rows.sample(sampleSize);
      const fields = fieldsOf(some);
      if (total < 2 * known.size && fields.every(({ id }) => known.fields.some((field) => field.id === id))) return;
      known = { size: total, fields, keyWidth: keyWidth(some) };
      setSample(known);
    };
    look();
    return sheet.subscribe(look);
  }, [sheet]);
  return sample;
}

function shown(id: string, { fields, keyWidth }: Sample): ShownColumn {
  const { title, get } = column(id);
  const field = fields.find((field) => field.id === id);
  const content = id === 'key' ? keyWidth : id === 'revision' ? revisionWidth : field?.width ?? 12;
  const width = Math.min(Math.max(content, title.length + 3, 7), 36) + 2;
  return { id, title, get, numeric: id === 'revision' || (field?.numeric ?? false), width };
}
