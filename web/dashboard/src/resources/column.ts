import type { Resource } from '@watchtide/client';
import { at, parsePath, pathText, split, type Path } from './path';

/** What a column shows of each resource. */
export interface Column {
  /** Its name in the URL: a path, or `key`, `revision`, `value` for what every resource has. */
  readonly id: string;
  readonly title: string;
  /** What it shows. */
  get(resource: Resource): unknown;
}

const builtIn: Readonly<Record<string, Column>> = {
  key: { id: 'key', title: 'key', get: ({ key }) => key },
  revision: { id: 'revision', title: 'revision', get: ({ revision }) => revision },
  value: { id: 'value', title: 'value', get: ({ value }) => value },
};

/** The name of a field's column. A field that is called like what every resource has gets a backslash in front. */
export function columnID(path: Path): string {
  const text = pathText(path);
  return Object.hasOwn(builtIn, text) ? `\\${text}` : text;
}

/** The column of a name. Every text names one. */
export function column(id: string): Column {
  if (Object.hasOwn(builtIn, id)) return builtIn[id]!;
  const path = parsePath(id);
  return { id, title: path.join('.'), get: ({ value }) => at(value, path) };
}

/** The columns of a list in the URL, each once. */
export function parseColumns(text: string): string[] {
  return [...new Set(split(text, ',').filter((id) => id !== ''))];
}
