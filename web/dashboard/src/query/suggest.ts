import { fieldText, valueText } from './query';

/** Something that can take the place of a part of the query. */
export interface Suggestion {
  readonly title: string;
  readonly note: string;
  /** The part that it replaces, as indexes, and the text for it. */
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** A field that a query can name. */
export interface SuggestedField {
  readonly id: string;
  readonly title: string;
  readonly numeric: boolean;
}

/** A value of a field, and how often it occurs in a sample. */
export interface SuggestedValue {
  readonly text: string;
  readonly count: number;
}

const most = 8;

const beginning = /(?:^|\s)!?((?:\\[^]|[^\\\s"])*)$/u; // of the term before the cursor, unless that is in quotes
const compared = /^((?:\\[^]|(?!!=)[^\\:<>=])+)(?:!=|>=|<=|[:=<>])(?:.*,)?(.*)$/su;

/** Suggests fields or values for the term that ends at the cursor. */
export function suggest(
  text: string,
  cursor: number,
  fields: readonly SuggestedField[],
  valuesOf: (field: string) => readonly SuggestedValue[],
): Suggestion[] {
  const term = beginning.exec(text.slice(0, cursor))?.[1];
  if (!term || isQuoted(text.slice(0, cursor))) return [];
  const [, field, value = ''] = compared.exec(term) ?? [];
  if (field === undefined) return fieldsFor(term, cursor, fields);
  return valuesFor(value, cursor, valuesOf(field.replace(/\\([:<>=!"\s])/gu, '$1')));
}

const isQuoted = (text: string) => (text.replace(/\\[^]/gu, '').match(/"/g) ?? []).length % 2 === 1;

function fieldsFor(typed: string, cursor: number, fields: readonly SuggestedField[]): Suggestion[] {
  const wanted = typed.toLowerCase();
  const ranked = fields
    .map((field) => ({ field, rank: rankOf(field.title.toLowerCase(), wanted) }))
    .filter(({ rank }) => rank < Infinity)
    .sort((a, b) => a.rank - b.rank);
  return ranked.slice(0, most).map(({ field: { id, title, numeric } }) => ({
    title,
    note: numeric ? 'number' : '',
    from: cursor - typed.length,
    to: cursor,
    text: `${fieldText(id)}${numeric ? '>' : ':'}`,
  }));
}

// The beginning of the field is better than that of one of its names, and that is better than the rest.
function rankOf(title: string, wanted: string): number {
  if (title.startsWith(wanted)) return 0;
  if (title.includes(`.${wanted}`)) return 1;
  return title.includes(wanted) ? 2 : Infinity;
}

function valuesFor(typed: string, cursor: number, values: readonly SuggestedValue[]): Suggestion[] {
  const wanted = typed.toLowerCase();
  return values
    .filter(({ text }) => text.toLowerCase().startsWith(wanted) && text !== typed)
    .slice(0, most)
    .map(({ text, count }) => ({
      title: text || '(empty)',
      note: `${count}×`,
      from: cursor - typed.length,
      to: cursor,
      text: `${valueText(text)} `,
    }));
}

/** Returns the query with a suggestion in its place, and where the cursor is then. */
export function accepted(query: string, { from, to, text }: Suggestion): { text: string; cursor: number } {
  const rest = query.slice(to);
  const put = text.endsWith(' ') && rest.startsWith(' ') ? text.slice(0, -1) : text;
  return { text: query.slice(0, from) + put + rest, cursor: from + put.length };
}
