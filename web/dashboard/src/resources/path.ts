/** Where a field is in a value: the names on the way to it. */
export type Path = readonly string[];

/**
 * A path as the URL and a column's head have it: `spec.replicas`. What has a
 * meaning there has a backslash in front: a dot in a name, the comma between
 * columns, the minus in front of a descending sort.
 */
export function pathText(path: Path): string {
  const text = path.map((name) => name.replace(/[\\.,]/g, '\\$&')).join('.');
  return text.startsWith('-') ? `\\${text}` : text;
}

/** Reads what pathText wrote. */
export function parsePath(text: string): Path {
  return split(text, '.').map(plain);
}

/** Splits at a separator that has no backslash in front. */
export function split(text: string, separator: '.' | ','): string[] {
  const parts = [''];
  for (const piece of text.match(/\\?[^]/gu) ?? []) {
    if (piece === separator) parts.push('');
    else parts[parts.length - 1] += piece;
  }
  return parts;
}

const plain = (name: string) => name.replace(/\\([^])/gu, '$1');

/** What a value has at a path, or undefined. */
export function at(value: unknown, path: Path): unknown {
  let inner = value;
  for (const name of path) {
    if (!isObject(inner) || !Object.hasOwn(inner, name)) return undefined;
    inner = inner[name];
  }
  return inner;
}

/** Has named fields. A list has none: it is shown as one. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
