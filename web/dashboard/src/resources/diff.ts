import { isObject, type Path } from './path';

/** A field that differs. undefined: the field does not exist. */
export interface Difference {
  readonly path: Path;
  readonly before: unknown;
  readonly after: unknown;
}

/** Returns the innermost fields in which two values differ, at most limit of them. */
export function diff(before: unknown, after: unknown, limit = 100): Difference[] {
  const found: Difference[] = [];
  compare(before, after, []);
  return found;

  function compare(before: unknown, after: unknown, path: Path): void {
    if (before === after || found.length >= limit) return;
    if (!comparable(before, after)) return void found.push({ path, before, after });
    for (const name of namesOf(before, after)) compare(member(before as Inner, name), member(after as Inner, name), [...path, name]);
  }
}

type Inner = Readonly<Record<string, unknown>>;

const member = (inner: Inner, name: string) => (Object.hasOwn(inner, name) ? inner[name] : undefined);

// Arrays are compared by their members, like objects.
function comparable(before: unknown, after: unknown): boolean {
  return (isObject(before) && isObject(after)) || (Array.isArray(before) && Array.isArray(after));
}

function namesOf(before: unknown, after: unknown): Set<string> {
  return new Set([...Object.keys(before as Inner), ...Object.keys(after as Inner)]);
}
