/** The path to a field in a value: the names of the fields that lead to it. */
export type Path = readonly string[];

/**
 * Formats a path for the URL: `spec.replicas`. Characters with a meaning are escaped
 * with a backslash: a dot in a name, the comma between columns, and the minus of a
 * descending sort.
 */
export function pathText(path: Path): string {
  const text = path.map((name) => name.replace(/[\\.,]/g, '\\$&')).join('.');
  return text.startsWith('-') ? `\\${text}` : text;
}

/** Parses the result of pathText. */
export function parsePath(text: string): Path {
  return split(text, '.').map(unescape);
}

/** Splits at separators that are not escaped with a backslash. */
export function split(text: string, separator: '.' | ','): string[] {
  const parts = [''];
  for (const piece of text.match(/\\?[^]/gu) ?? []) {
    if (piece === separator) parts.push('');
    else parts[parts.length - 1] += piece;
  }
  return parts;
}

const unescape = (name: string) => name.replace(/\\([^])/gu, '$1');

/** Returns the field of a value at a path, or undefined. */
export function at(value: unknown, path: Path): unknown {
  let inner = value;
  for (const name of path) {
    if (!isObject(inner) || !Object.hasOwn(inner, name)) return undefined;
    inner = inner[name];
  }
  return inner;
}

/** Reports whether a value is an object with named fields, and not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
