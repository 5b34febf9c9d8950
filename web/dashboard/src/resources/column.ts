import type { Resource } from '@watchtide/client';
import { at, type Path, parsePath, pathText, split } from './path';

/** A column of the table. */
export interface Column {
  /** Its name in the URL: a path, or a built-in column: `key`, `revision` or `value`. */
  readonly id: string;
  readonly title: string;
  /** Returns the value to show. */
  get(resource: Resource): unknown;
}

const builtIn: Readonly<Record<string, Column>> = {
  key: { id: 'key', title: 'key', get: ({ key }) => key },
  revision: { id: 'revision', title: 'revision', get: ({ revision }) => revision },
  value: { id: 'value', title: 'value', get: ({ value }) => value },
};

/** Returns the name of a field's column. A backslash is put before a field with the name of a built-in column. */
export function columnID(path: Path): string {
  const text = pathText(path);
  return Object.hasOwn(builtIn, text) ? `\\${text}` : text;
}

/** Returns the column with a name. Every text is a name. */
export function column(id: string): Column {
  if (Object.hasOwn(builtIn, id)) return builtIn[id]!;
  const path = parsePath(id);
  return { id, title: path.join('.'), get: ({ value }) => at(value, path) };
}

/** Returns the path of a field's column; empty for a built-in column. */
export const columnPath = (id: string): Path => (Object.hasOwn(builtIn, id) ? [] : parsePath(id));

/** Parses the list of columns in the URL; each occurs once. */
export function parseColumns(text: string): string[] {
  return [...new Set(split(text, ',').filter((id) => id !== ''))];
}
